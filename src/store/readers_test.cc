// The store and clients that read it at the same time: threads, and processes that die at any instruction.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "shm/index_reader.h"
#include "store/object_store.h"

namespace datasystem::store {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr int kKeys = 40;

std::string KeyOf(unsigned number) { return "key" + std::to_string(number % kKeys); }

// All bytes of a value are the same, so a torn or reused one shows.
bool IsWhole(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [first = bytes.front()](std::byte b) { return b == first; });
}

class Node {
 public:
  Node() { index_->set_valid_until(Clock::Steady().Now() + std::chrono::hours(1)); }

  // As a client in another process does.
  std::unique_ptr<shm::IndexReader> Attach(const shm::ControlSegment& control) const {
    const auto duplicate = [](int fd) { return UniqueFd(::dup(fd)); };
    const shm::SegmentHandle index = index_->index_segment();
    const shm::SegmentHandle marks = index_->marks_segment();
    const shm::SegmentHandle data = memory_->segments().front();
    return shm::IndexReader::Attach(
               {.index = shm::MappedSegment::MapForReading(duplicate(index.fd), index.size_bytes).value(),
                .marks = shm::MappedSegment::Map(duplicate(marks.fd), marks.size_bytes).value(),
                .control = shm::MappedSegment::Map(duplicate(control.fd()), control.size_bytes()).value(),
                .data = {{data.id, memory_->Resolve({.size = data.size_bytes}).value()}}})
        .value();
  }

  // For threads of this process: with the worker's own mappings, so that the thread sanitizer judges the algorithm.
  std::unique_ptr<shm::IndexReader> AttachHere(const shm::ControlSegment& control) const {
    using shm::MappedSegment;
    const shm::SegmentHandle data = memory_->segments().front();
    return shm::IndexReader::Attach(
               {.index = MappedSegment::Borrow(index_->index_bytes()),
                .marks = MappedSegment::Borrow(index_->marks_bytes()),
                .control = MappedSegment::Borrow(std::as_writable_bytes(std::span(&control.layout(), 1))),
                .data = {{data.id, memory_->Resolve({.size = data.size_bytes}).value()}}})
        .value();
  }

  // Sets, deletes, evicts: whatever frees memory.
  void Churn(std::mt19937& random) {
    const std::string key = KeyOf(random());
    if (random() % 8 == 0) {
      store_.Erase(key, UINT64_MAX);
      return;
    }
    const uint64_t size = random() % 4 == 0 ? 16 * 1024 + random() % (256 * 1024) : 1 + random() % 4096;
    auto extent = store_.Allocate(size);
    if (!extent.ok()) return;  // all is read at this moment
    std::memset(extent->bytes().data(), static_cast<int>(random() % 256), size);
    ASSERT_TRUE(store_.Publish(key, {.version = ++version_, .evictable = true}, *extent).ok());
  }

  void ExpectNothingLeft() {
    store_.Clear();
    store_.Reclaim();
    EXPECT_EQ(store_.stats().retired, 0u);
    EXPECT_EQ(memory_->usage().allocated_bytes, 0u);
    EXPECT_EQ(index_->usage().record_bytes, 0u);
  }

  shm::PinTables& pins() { return index_->pins(); }

 private:
  std::unique_ptr<shm::CacheMemory> memory_ = shm::CacheMemory::Create({.size_bytes = 8 * kMiB}).value();
  std::unique_ptr<shm::Index> index_ = shm::Index::Create({.bytes_max = kMiB}).value();
  ObjectStore store_{*memory_, *index_, Clock::Steady(), nullptr};
  uint64_t version_ = 0;
};

// Reads, and holds some of it for a while. False as soon as a value is not whole.
class Reader {
 public:
  Reader(shm::IndexReader& index, unsigned seed) : index_(index), random_(seed) {}

  bool Step() {
    auto found = index_.Find(KeyOf(random_()));
    if (found) {
      ++hits_;
      if (!IsWhole(found->bytes)) return false;
      if (held_.size() < 64 && random_() % 4 == 0) held_.push_back(std::move(*found));
    }
    if (!held_.empty() && random_() % 8 == 0) {
      const size_t pick = random_() % held_.size();
      if (!IsWhole(held_[pick].bytes)) return false;
      std::swap(held_[pick], held_.back());
      held_.pop_back();
    }
    return true;
  }
  uint64_t hits() const { return hits_; }

 private:
  shm::IndexReader& index_;
  std::mt19937 random_;
  std::vector<shm::PinnedValue> held_;
  uint64_t hits_ = 0;
};

TEST(ReadersOfAStore, SeeWholeValuesWhateverTheWorkerDoes) {
  Node node;
  const shm::ControlSegment control = shm::ControlSegment::Create().value();
  node.pins().Add(&control.layout());
  const auto index = node.AttachHere(control);
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::atomic<uint64_t> hits{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Reader reader(*index, i);
      while (!done && torn == 0) torn += reader.Step() ? 0 : 1;
      hits += reader.hits();
    });
  }
  std::mt19937 random(42);
  for (int i = 0; i < 20000; ++i) node.Churn(random);
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(hits, 1000u);
  node.ExpectNothingLeft();
  node.pins().Remove(&control.layout());
}

TEST(ReadersOfAStore, MayDieAtAnyInstructionAndLeaveNothingBehind) {
  constexpr int kRounds = 500;
  Node node;
  std::mt19937 random(7);
  int torn = 0;
  for (int round = 0; round < kRounds; ++round) {
    const shm::ControlSegment control = shm::ControlSegment::Create().value();
    node.pins().Add(&control.layout());
    const auto index = node.Attach(control);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Reader reader(*index, static_cast<unsigned>(round));
      while (reader.Step()) {
      }
      ::_exit(1);
    }
    for (unsigned i = 100 + random() % 400; i > 0; --i) node.Churn(random);
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    torn += WIFSIGNALED(status) ? 0 : 1;
    // Its connection ends with it.
    node.pins().Remove(&control.layout());
  }
  EXPECT_EQ(torn, 0);
  node.ExpectNothingLeft();
}

}  // namespace
}  // namespace datasystem::store
