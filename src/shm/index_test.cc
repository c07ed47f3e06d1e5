#include "shm/index.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <thread>

#include "shm/index_reader.h"

namespace datasystem::shm {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr uint64_t kMiB = 1 << 20;

UniqueFd Duplicate(int fd) { return UniqueFd(::dup(fd)); }

// A worker's index and one client of it, in one process.
class IndexTest : public testing::Test {
 protected:
  IndexTest() {
    index_->pins().Add(&control_.layout());
    index_->set_valid_until(Clock::Steady().Now() + hours(1));
    std::memset(values_, 'v', sizeof(values_));
    reader_ = Attach().value();
  }
  ~IndexTest() override {
    std::vector<Record*> all;
    index_->ForEach([&](Record& record) { all.push_back(&record); });
    for (Record* record : all) Remove(record);
    index_->pins().Remove(&control_.layout());
  }

  Result<std::unique_ptr<IndexReader>> Attach() const {
    const SegmentHandle index = index_->index_segment();
    const SegmentHandle marks = index_->marks_segment();
    return IndexReader::Attach(
        {.index = MappedSegment::MapForReading(Duplicate(index.fd), index.size_bytes).value(),
         .marks = MappedSegment::Map(Duplicate(marks.fd), marks.size_bytes).value(),
         .control = MappedSegment::Map(Duplicate(control_.fd()), control_.size_bytes()).value(),
         .data = {{0, std::as_bytes(std::span(values_))}}});
  }
  Record* Make(std::string_view key, uint64_t offset = 0, uint64_t size = 8) {
    void* place = index_->Allocate(key.size());
    return place == nullptr ? nullptr : new (place) Record(key, {.segment = 0, .offset = offset, .size = size});
  }
  Record* Add(std::string_view key, uint64_t offset = 0, uint64_t size = 8) {
    Record* record = Make(key, offset, size);
    CHECK(index_->Link(record, nullptr));
    return record;
  }
  void Remove(Record* record) {
    index_->Unlink(record);
    index_->Free(record);
  }

  std::unique_ptr<Index> index_ = Index::Create({.bytes_max = 4 * kMiB, .incarnation = 1}).value();
  ControlSegment control_ = ControlSegment::Create().value();
  char values_[4096];
  std::unique_ptr<IndexReader> reader_;
};

TEST_F(IndexTest, AClientFindsWhatIsLinkedAndNothingElse) {
  Add("key", 16, 100);
  const auto found = reader_->Find("key");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes.size(), 100u);
  EXPECT_EQ(static_cast<const void*>(found->bytes.data()), values_ + 16);
  EXPECT_EQ(reader_->SizeOf("key"), 100u);
  EXPECT_FALSE(reader_->Find("kex"));
  EXPECT_FALSE(reader_->Find("ke"));
  EXPECT_FALSE(reader_->Find(""));
}

TEST_F(IndexTest, APinIsSeenUntilItIsGivenUp) {
  Record* record = Add("key");
  {
    const auto found = reader_->Find("key");
    EXPECT_TRUE(index_->pins().Collect().Contains(index_->IdOf(record)));
  }
  EXPECT_FALSE(index_->pins().Collect().Contains(index_->IdOf(record)));
}

TEST_F(IndexTest, ReplacingIsSeenAtOnceAndThePinnedOldOneStaysAsItIs) {
  Record* old = Add("key", 0, 10);
  const auto held = reader_->Find("key");
  Record* next = Make("key", 64, 20);
  ASSERT_TRUE(index_->Link(next, old));
  EXPECT_EQ(reader_->SizeOf("key"), 20u);
  EXPECT_TRUE(index_->pins().Collect().Contains(index_->IdOf(old)));
  EXPECT_EQ(held->bytes.size(), 10u);
  index_->Free(old);
}

TEST_F(IndexTest, NothingIsReadPastTheWorkersDeadline) {
  Add("key");
  index_->set_valid_until(Clock::Steady().Now() - milliseconds(1));
  EXPECT_FALSE(reader_->Find("key"));
  EXPECT_FALSE(reader_->SizeOf("key"));
  EXPECT_EQ(index_->pins().Collect().size(), 0u) << "a refused read leaves no pin";
  index_->set_valid_until(Clock::Steady().Now() + hours(1));
  EXPECT_TRUE(reader_->Find("key"));
  index_->set_valid_until(TimePoint::min());
  EXPECT_FALSE(reader_->Find("key"));
}

TEST_F(IndexTest, AnExpiredObjectIsNotRead) {
  Record* record = Add("key");
  record->expires_at_ns = ToMonotonicNs(Clock::Steady().Now() + hours(1));
  EXPECT_TRUE(reader_->Find("key"));
  record->expires_at_ns = ToMonotonicNs(Clock::Steady().Now());
  EXPECT_FALSE(reader_->Find("key"));
}

TEST_F(IndexTest, AReadLeavesAMarkThatTheWorkerTakes) {
  Record* record = Add("key");
  EXPECT_FALSE(index_->TakeMark(record));
  ASSERT_TRUE(reader_->Find("key"));
  EXPECT_TRUE(index_->TakeMark(record));
  EXPECT_FALSE(index_->TakeMark(record));
}

TEST_F(IndexTest, AFullPinTableMeansToAskTheWorkerAndAFreeSlotIsFoundAgain) {
  Add("key");
  std::vector<PinnedValue> held;
  for (uint32_t i = 0; i < kPinSlots; ++i) {
    auto found = reader_->Find("key");
    ASSERT_TRUE(found) << i;
    held.push_back(std::move(*found));
  }
  EXPECT_FALSE(reader_->Find("key"));
  held.erase(held.begin() + 1234);
  EXPECT_TRUE(reader_->Find("key"));
}

TEST_F(IndexTest, ManyKeysAreFoundAndRecordsAreUsedAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<Record*> records;
    for (int i = 0; i < 20000; ++i) records.push_back(Add("key" + std::to_string(i)));
    for (int i = 0; i < 20000; ++i) ASSERT_TRUE(reader_->SizeOf("key" + std::to_string(i))) << i;
    for (Record* record : records) Remove(record);
  }
  EXPECT_EQ(index_->usage().record_bytes, 0u);
}

TEST_F(IndexTest, AFullIndexRefusesRecordsAndServesOn) {
  const std::string tail(1000, 'x');
  int made = 0;
  while (Record* record = Make(std::to_string(made) + tail)) {
    ASSERT_TRUE(index_->Link(record, nullptr));
    ++made;
  }
  EXPECT_GT(made, 3000);
  EXPECT_TRUE(reader_->SizeOf("0" + tail));
  Remove(index_->Find("0" + tail));
  Record* shorter = Make("short");
  ASSERT_NE(shorter, nullptr) << "a larger block is cut";
  index_->Free(shorter);
}

TEST_F(IndexTest, NobodyElseCanMapTheIndexForWriting) {
  const SegmentHandle handle = index_->index_segment();
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, handle.fd, 0), MAP_FAILED);
  const std::string path = "/proc/self/fd/" + std::to_string(handle.fd);
  const UniqueFd reopened(::open(path.c_str(), O_RDWR));
  if (reopened.valid()) {
    EXPECT_EQ(::mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, reopened.get(), 0), MAP_FAILED);
    EXPECT_LT(::pwrite(reopened.get(), "x", 1, 0), 0);
    EXPECT_NE(::ftruncate(reopened.get(), 0), 0);
  }
}

TEST_F(IndexTest, GarbageInEverythingAClientMayWriteHarmsNobody) {
  Add("key", 16, 100);
  auto* control = reinterpret_cast<unsigned char*>(&control_.layout());
  for (size_t i = 0; i < sizeof(ControlLayout); ++i) control[i] = static_cast<unsigned char>(i * 37 + 11);
  const SegmentHandle marks = index_->marks_segment();
  auto mapped = MappedSegment::Map(Duplicate(marks.fd), marks.size_bytes).value();
  std::memset(mapped.bytes().data(), 0xFF, mapped.bytes().size());

  EXPECT_LE(index_->pins().Collect().size(), kPinSlots);
  EXPECT_LE(index_->pins().slots_in_use(), kPinSlots);
  Record* record = Add("another");
  EXPECT_EQ(index_->Find("another"), record);
  EXPECT_FALSE(index_->TakeMark(record)) << "a new object begins without a mark";
  // A client of its own sees none of that.
  const ControlSegment other = ControlSegment::Create().value();
  index_->pins().Add(&other.layout());
  const SegmentHandle index = index_->index_segment();
  auto reader = IndexReader::Attach(
      {.index = MappedSegment::MapForReading(Duplicate(index.fd), index.size_bytes).value(),
       .marks = std::move(mapped),
       .control = MappedSegment::Map(Duplicate(other.fd()), other.size_bytes()).value(),
       .data = {{0, std::as_bytes(std::span(values_))}}});
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader)->Find("key"));
  index_->pins().Remove(&other.layout());
}

TEST_F(IndexTest, AHeaderThatDoesNotFitIsRefused) {
  // In front of the records, in the worker's own mapping.
  const SegmentHandle handle = index_->index_segment();
  const auto mapped = MappedSegment::MapForReading(Duplicate(handle.fd), handle.size_bytes).value();
  const uint64_t records_offset = reinterpret_cast<const IndexHeader*>(mapped.bytes().data())->records_offset;
  auto& header = *reinterpret_cast<IndexHeader*>(reinterpret_cast<std::byte*>(index_->At(0)) - records_offset);
  const uint64_t right = header.records_bytes;
  header.records_bytes = uint64_t{1} << 60;
  EXPECT_EQ(Attach().status().GetCode(), K_INVALID);
  header.records_bytes = right;
  header.layout = 99;
  EXPECT_EQ(Attach().status().GetCode(), K_INVALID);
  header.layout = kIndexLayout;
  EXPECT_TRUE(Attach().ok());
}

TEST(DeadWorker, IsNoticedByItsClientsWithoutASystemCall) {
  std::unique_ptr<Index> index;
  std::thread worker([&] { index = Index::Create({.bytes_max = kMiB}).value(); });
  worker.join();  // the thread that held the lock is gone
  const SegmentHandle handle = index->index_segment();
  const auto mapped = MappedSegment::MapForReading(Duplicate(handle.fd), handle.size_bytes).value();
  EXPECT_FALSE(WorkerIsAlive(*reinterpret_cast<const IndexHeader*>(mapped.bytes().data())));
}

}  // namespace
}  // namespace datasystem::shm
