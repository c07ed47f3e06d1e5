// Writers and readers on three workers, with every message delayed at random, so that messages
// overtake each other, and with changes of the epoch in between. What must hold: no reader sees a
// value older than the last one whose write had returned, or one that was never written as a whole;
// a writer that is alone with its keys gets exactly the answers that its own history says.
#include <gtest/gtest.h>

#include <random>

#include "base/wait_list.h"
#include "worker/test_workers.h"

namespace datasystem::worker {
namespace {

constexpr int kGroups = 4;
constexpr int kKeysOfGroup = 3;
constexpr int kChanges = 150;  // of each group
constexpr int kReaders = 12;

class RandomOperations {
 public:
  RandomOperations(uint64_t seed, bool keep_copies)
      : random_(seed), workers_(3, {.keep_copies = keep_copies}) {}

  void Run() {
    workers_.wire().hold = [](PeerMessage, bool) { return true; };
    for (int group = 0; group < kGroups; ++group) {
      ++writing_;
      workers_.Start(Write(group));
    }
    for (int i = 0; i < kReaders; ++i) {
      ++reading_;
      workers_.Start(Read());
    }
    const TimePoint end = TestWorkers::Deadline(std::chrono::seconds(100));
    while (writing_ + reading_ > 0 && std::chrono::steady_clock::now() < end) Step();
    EXPECT_EQ(writing_ + reading_, 0) << "somebody hangs";
  }

 private:
  struct KeyState {
    uint64_t value = 0;    // of the last change that has returned; 0: none
    uint64_t changes = 0;  // begun and ended ones
    bool changing = false;
  };

  size_t Below(size_t limit) { return random_() % limit; }
  ObjectService& SomeWorker() { return workers_[1 + Below(3)].objects; }
  static std::string KeyOf(int group, int i) {
    return std::string("g") + char('0' + group) + char('0' + i);
  }
  // Values of different sizes, whole or not to be told by looking.
  static std::string TextOf(uint64_t value) {
    std::string text;
    for (uint64_t i = 0; i <= value % 5; ++i) text += std::to_string(value) + ".";
    return text;
  }

  // Delivers one message, or lets time pass.
  void Step() {
    workers_.Poll();
    auto& held = workers_.wire().held;
    if (held.empty()) {
      workers_.RunUntil([] { return false; }, std::chrono::microseconds(100));
      return;
    }
    std::swap(held[Below(held.size())], held.back());
    auto deliver = std::move(held.back());
    held.pop_back();
    deliver();
    if (Below(500) == 0) announced_ = 0, ++epoch_;
    if (announced_ < 3 && Below(4) == 0) workers_.Announce(epoch_, ++announced_);
  }

  asio::awaitable<bool> Write(int group) {
    std::vector<KeyState*> states;
    for (int i = 0; i < kKeysOfGroup; ++i) states.push_back(&keys_[KeyOf(group, i)]);
    for (int change = 0; change < kChanges; ++change) {
      const int i = static_cast<int>(Below(kKeysOfGroup));
      const std::string key = KeyOf(group, i);
      const size_t kind = Below(6);
      if (kind == 0) {
        co_await ChangeAll(group, states);
      } else if (kind == 1) {
        co_await Expire(key, *states[i]);
      } else if (kind == 2) {
        co_await Delete(key, *states[i]);
      } else {
        co_await Set(key, *states[i], kind == 3);
      }
    }
    --writing_;
    co_return true;
  }

  static void Begin(KeyState& state) {
    ++state.changes;
    state.changing = true;
  }
  static void End(KeyState& state, uint64_t value) {
    ++state.changes;
    state.changing = false;
    state.value = value;
  }

  asio::awaitable<void> Set(std::string key, KeyState& state, bool only_if_absent) {
    const uint64_t value = ++last_value_;
    const uint64_t worker = 1 + Below(3);
    shm::Extent extent = workers_.ExtentOf(worker, TextOf(value));
    SetOptions options;
    options.only_if_absent = only_if_absent;
    Begin(state);
    Status set =
        co_await workers_[worker].objects.Set(key, extent, options, TestWorkers::Deadline());
    const bool refused = only_if_absent && state.value != 0;
    EXPECT_EQ(set.GetCode(), refused ? K_OC_KEY_ALREADY_EXIST : K_OK) << set.ToString();
    End(state, refused ? state.value : value);
  }

  asio::awaitable<void> Delete(std::string key, KeyState& state) {
    Begin(state);
    Status removed = co_await SomeWorker().Delete(key, TestWorkers::Deadline());
    EXPECT_TRUE(removed.IsOk()) << removed.ToString();
    End(state, 0);
  }

  asio::awaitable<void> Expire(std::string key, KeyState& state) {
    Status done = co_await SomeWorker().Expire(key, 3600 * 1000, TestWorkers::Deadline());
    EXPECT_EQ(done.GetCode(), state.value == 0 ? K_NOT_FOUND : K_OK) << done.ToString();
  }

  asio::awaitable<void> ChangeAll(int group, std::vector<KeyState*> states) {
    const uint64_t worker = 1 + Below(3);
    std::vector<std::string> keys;
    std::vector<shm::Extent> extents;
    std::vector<uint64_t> values;
    bool exists = false;
    for (int i = 0; i < kKeysOfGroup; ++i) {
      keys.push_back(KeyOf(group, i));
      values.push_back(++last_value_);
      extents.push_back(workers_.ExtentOf(worker, TextOf(values.back())));
      exists |= states[i]->value != 0;
      Begin(*states[i]);
    }
    SetOptions options;
    options.only_if_absent = true;
    Status set =
        co_await workers_[worker].objects.SetAll(keys, extents, options, TestWorkers::Deadline());
    EXPECT_EQ(set.GetCode(), exists ? K_OC_KEY_ALREADY_EXIST : K_OK) << set.ToString();
    for (int i = 0; i < kKeysOfGroup; ++i) End(*states[i], exists ? states[i]->value : values[i]);
  }

  asio::awaitable<bool> Read() {
    while (writing_ > 0) {
      // What is here takes no time, and would never let anything else happen.
      co_await Pause(workers_.wire().context, std::chrono::microseconds(20));
      const std::string key =
          KeyOf(static_cast<int>(Below(kGroups)), static_cast<int>(Below(kKeysOfGroup)));
      KeyState& state = keys_[key];
      const KeyState before = state;
      if (Below(4) == 0) {
        std::vector<std::string> keys(1, key);
        auto sizes = co_await SomeWorker().Sizes(std::move(keys), TestWorkers::Deadline());
        const bool still = !before.changing && state.changes == before.changes;
        if (still && before.value != 0) {
          EXPECT_TRUE((*sizes)[0].ok());
          if ((*sizes)[0].ok()) {
            EXPECT_EQ((*sizes)[0].value(), TextOf(before.value).size());
          }
        }
        if (still && before.value == 0) {
          EXPECT_EQ((*sizes)[0].status().GetCode(), K_NOT_FOUND);
        }
        continue;
      }
      if (Below(3) == 0) {
        co_await ReadGroup(static_cast<int>(Below(kGroups)));
        continue;
      }
      auto got = co_await SomeWorker().Get(key, TimePoint::min(), TestWorkers::Deadline());
      Check(key, before, state, got);
    }
    --reading_;
    co_return true;
  }

  asio::awaitable<void> ReadGroup(int group) {
    std::vector<std::string> keys;
    std::vector<KeyState> before;
    for (int i = 0; i < kKeysOfGroup; ++i) {
      keys.push_back(KeyOf(group, i));
      before.push_back(keys_[keys.back()]);
    }
    auto got = co_await SomeWorker().GetMany(keys, TimePoint::min(), TestWorkers::Deadline());
    for (int i = 0; i < kKeysOfGroup; ++i) Check(keys[i], before[i], keys_[keys[i]], got[i]);
  }

  void Check(const std::string& key, const KeyState& before, const KeyState& after,
             const Result<store::ObjectRef>& got) {
    const bool still = !before.changing && after.changes == before.changes;
    if (!got.ok()) {
      EXPECT_EQ(got.status().GetCode(), K_NOT_FOUND) << got.status().ToString();
      if (still) {
        EXPECT_EQ(before.value, 0U) << key;
      }
      return;
    }
    const std::string text = TestWorkers::ValueOf(got);
    const uint64_t value = std::stoull(text);
    EXPECT_EQ(text, TextOf(value));
    EXPECT_GE(value, before.value) << key << " is older than what a write before had returned";
    if (still) {
      EXPECT_EQ(value, before.value) << key;
    }
  }

  std::mt19937_64 random_;
  std::map<std::string, KeyState> keys_;
  uint64_t last_value_ = 0;
  int writing_ = 0;
  int reading_ = 0;
  uint64_t epoch_ = 10;
  uint64_t announced_ = 3;  // workers that know of the epoch
  TestWorkers workers_;
};

TEST(RandomOperations, NobodyEverReadsWhatIsOlderThanAWriteThatHadReturned) {
  const uint64_t first = std::random_device()();
  for (const bool keep_copies : {true, false}) {
    for (uint64_t seed = first; seed < first + 3; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed) + (keep_copies ? "" : ", copies are not kept"));
      RandomOperations(seed, keep_copies).Run();
    }
  }
}

}  // namespace
}  // namespace datasystem::worker
