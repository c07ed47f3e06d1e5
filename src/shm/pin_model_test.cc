// The algorithm of shm/index_reader.h and store/object_store.cc as a model small enough to try every interleaving:
// one key, a few blocks of memory, one worker that overwrites and deletes, readers that pin. A step is one access to
// shared memory. And the same with a mistake planted, to show that the model would notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace datasystem::shm {
namespace {

constexpr int kBlocks = 3;
constexpr int kReaders = 2;
constexpr int kRounds = 3;        // changes by the worker
constexpr int kLookupsMax = 2;    // by each reader, retries included
constexpr int8_t kPoison = -1;    // what free memory contains

enum class Mistake {
  kNone,
  kReaderTrustsTheFirstLook,
  kWorkerLooksBeforeUnlinking,
  kWorkerDoesNotLook,
  kPinGoesBeforeTheCopy,
};

// All that there is, in bytes that can be compared.
struct State {
  int8_t word = 0;                             // the table's: a block, 0 for none
  std::array<int8_t, kBlocks + 1> content{};   // written number, or poison; block 0 is unused
  std::array<int8_t, kReaders> pins{};
  struct Reader {
    int8_t step = 0, seen = 0, first_half = 0, lookups = 0;
    auto operator<=>(const Reader&) const = default;
  };
  std::array<Reader, kReaders> readers{};
  struct Worker {
    int8_t step = 0, round = 0, fresh = 0, old = 0, looked = 0;
    std::array<int8_t, kReaders> noted{};  // pins, as they were when it looked
    std::array<bool, kBlocks + 1> retired{};
    auto operator<=>(const Worker&) const = default;
  } worker;
  auto operator<=>(const State&) const = default;
};

class Model {
 public:
  explicit Model(Mistake mistake) : mistake_(mistake) {}

  // The first thing that went wrong in any interleaving.
  std::optional<std::string> Explore() {
    State start;
    start.content.fill(kPoison);
    Visit(start);
    return wrong_;
  }
  size_t states() const { return seen_.size(); }

 private:
  void Visit(const State& state) {
    if (wrong_ || !seen_.insert(state).second) return;
    for (int reader = 0; reader < kReaders; ++reader) {
      State next = state;
      if (StepReader(next, reader)) Visit(next);
    }
    State next = state;
    if (StepWorker(next)) Visit(next);
  }

  bool StepReader(State& state, int number) {
    State::Reader& reader = state.readers[number];
    switch (reader.step) {
      case 0:  // look
        if (reader.lookups++ == kLookupsMax) return false;
        reader.seen = state.word;
        reader.step = reader.seen == 0 ? 0 : 1;
        return true;
      case 1:  // pin
        state.pins[number] = reader.seen;
        reader.step = mistake_ == Mistake::kReaderTrustsTheFirstLook ? 3 : 2;
        return true;
      case 2:  // look again
        if (state.word == reader.seen) {
          reader.step = 3;
        } else {
          state.pins[number] = 0;
          reader.step = 0;
        }
        return true;
      case 3:  // copy, the one half
        reader.first_half = state.content[reader.seen];
        if (reader.first_half == kPoison) wrong_ = "a reader saw freed memory";
        if (mistake_ == Mistake::kPinGoesBeforeTheCopy) state.pins[number] = 0;
        reader.step = 4;
        return true;
      default:  // and the other; let go
        if (state.content[reader.seen] != reader.first_half) wrong_ = "a reader saw a torn value";
        state.pins[number] = 0;
        reader = {.lookups = reader.lookups};
        return true;
    }
  }

  bool StepWorker(State& state) {
    State::Worker& worker = state.worker;
    switch (worker.step) {
      case 0: {  // memory for the next value; every third change is a deletion
        if (worker.round == kRounds) return false;
        ++worker.round;
        if (worker.round % 3 != 0) {
          for (int8_t block = 1; block <= kBlocks; ++block) {
            if (state.content[block] == kPoison && !worker.retired[block]) worker.fresh = block;
          }
          if (worker.fresh == 0) {  // all are read: the write is refused
            worker.step = 2;
            return true;
          }
          state.content[worker.fresh] = worker.round;
        }
        worker.step = mistake_ == Mistake::kWorkerLooksBeforeUnlinking ? 2 : 1;
        worker.old = state.word;
        return true;
      }
      case 1:  // publish or unlink
        state.word = worker.fresh;
        if (worker.old != 0) worker.retired[worker.old] = true;
        worker.fresh = worker.old = 0;
        worker.step = mistake_ == Mistake::kWorkerLooksBeforeUnlinking ? 4 : 2;
        worker.looked = 0;
        return true;
      case 2: {  // look through the pins, one a step
        if (mistake_ == Mistake::kWorkerDoesNotLook) {
          worker.step = 4;
          return true;
        }
        worker.noted[worker.looked] = state.pins[worker.looked];
        if (++worker.looked < kReaders) return true;
        worker.looked = 0;
        worker.step = mistake_ == Mistake::kWorkerLooksBeforeUnlinking ? 1 : 4;
        return true;
      }
      default: {  // free what was in no pin
        for (int8_t block = 1; block <= kBlocks; ++block) {
          const bool pinned = std::find(worker.noted.begin(), worker.noted.end(), block) != worker.noted.end();
          if (!worker.retired[block] || pinned) continue;
          worker.retired[block] = false;
          state.content[block] = kPoison;
        }
        worker = {.round = worker.round, .retired = worker.retired};
        return true;
      }
    }
  }

  const Mistake mistake_;
  std::set<State> seen_;
  std::optional<std::string> wrong_;
};

TEST(PinModel, NoInterleavingLetsAReaderSeeFreedOrTornMemory) {
  Model model(Mistake::kNone);
  const auto wrong = model.Explore();
  EXPECT_FALSE(wrong) << *wrong;
  EXPECT_GT(model.states(), 10000u) << "the model has become too small to mean anything";
}

class PlantedMistake : public testing::TestWithParam<Mistake> {};

TEST_P(PlantedMistake, IsFound) { EXPECT_TRUE(Model(GetParam()).Explore()); }

INSTANTIATE_TEST_SUITE_P(PinModel, PlantedMistake,
                         testing::Values(Mistake::kReaderTrustsTheFirstLook, Mistake::kWorkerLooksBeforeUnlinking,
                                         Mistake::kWorkerDoesNotLook, Mistake::kPinGoesBeforeTheCopy));

}  // namespace
}  // namespace datasystem::shm
