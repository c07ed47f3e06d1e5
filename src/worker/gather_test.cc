#include "worker/gather.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker/test_workers.h"

namespace datasystem::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Each;
using testing::ElementsAre;

const std::string kNotFound = "error " + std::to_string(K_NOT_FOUND);

// Worker 3 reads what 1 and 2 have.
class GatherTest : public testing::Test {
 protected:
  std::vector<std::string> Keys(uint64_t shard, int count) const {
    std::vector<std::string> keys;
    for (int i = 0; i < count; ++i) keys.push_back(workers_.KeyAt(shard, i));
    return keys;
  }
  void SetAt(uint64_t worker, const std::vector<std::string>& keys, size_t size = 0) {
    for (const std::string& key : keys) {
      ASSERT_TRUE(workers_.Set(worker, key, ValueOf(key, size)).IsOk());
    }
  }
  static std::string ValueOf(const std::string& key, size_t size = 0) {
    std::string value = key + " ";
    while (value.size() < size) value += value.substr(0, size - value.size());
    return value;
  }
  void ExpectAll(const std::vector<std::string>& keys, size_t size = 0) {
    const auto values = workers_.GetMany(3, keys);
    ASSERT_EQ(values.size(), keys.size());
    for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(values[i], ValueOf(keys[i], size)) << i;
  }
  int Messages(PeerMessage type) { return workers_.wire().requests[type]; }
  bool NothingPinned() {
    return workers_.RunUntil([&] {
      for (const uint64_t id : {1, 2, 3}) {
        workers_[id].store.Reclaim();
        if (workers_[id].store.stats().retired != 0) return false;
      }
      return true;
    });
  }

  TestWorkers workers_{3};
};

TEST_F(GatherTest, ValuesAtTheirShardCostOneMessage) {
  const auto keys = Keys(1, 100);
  SetAt(1, keys);
  ExpectAll(keys);
  EXPECT_EQ(Messages(PeerMessage::kGetMany), 1);
  EXPECT_EQ(Messages(PeerMessage::kGet) + Messages(PeerMessage::kFetch), 0);
  for (const auto& key : keys) EXPECT_TRUE(workers_[3].store.Find(key)) << "kept as a replica";
}

TEST_F(GatherTest, ValuesElsewhereCostOneMessageToTheShardAndOneToTheOwner) {
  const auto keys = Keys(1, 20);
  SetAt(2, keys);
  ExpectAll(keys);
  EXPECT_EQ(Messages(PeerMessage::kGetMany), 2);
  EXPECT_EQ(Messages(PeerMessage::kGet) + Messages(PeerMessage::kFetch), 0);
}

TEST_F(GatherTest, ValuesWhoseShardIsTheReaderItselfCostOneMessageToTheOwner) {
  const auto keys = Keys(3, 20);
  SetAt(2, keys);
  ExpectAll(keys);
  EXPECT_EQ(Messages(PeerMessage::kGetMany), 1);
  EXPECT_EQ(Messages(PeerMessage::kGet) + Messages(PeerMessage::kFetch), 0);
}

TEST_F(GatherTest, CopiesThatCameTogetherAreDroppedByLaterSets) {
  const auto keys = Keys(1, 10);
  SetAt(2, keys);
  ExpectAll(keys);
  for (const auto& key : keys) ASSERT_TRUE(workers_.Set(1, key, "newer").IsOk());
  EXPECT_THAT(workers_.GetMany(3, keys), Each("newer"));
}

TEST_F(GatherTest, WhatIsOverwrittenWhileItTravelsIsNotKept) {
  const auto keys = Keys(1, 3);
  SetAt(2, keys);
  workers_.wire().hold = [&](PeerMessage type, bool answer) {
    return type == PeerMessage::kGetMany && answer && workers_.wire().payloads > 0;
  };
  const auto early = workers_.StartGetMany(3, keys);
  ASSERT_TRUE(workers_.RunUntil([&] { return workers_.wire().held.size() == 1; }));
  ASSERT_TRUE(workers_.Set(1, keys[1], "newer").IsOk());
  workers_.wire().Release();
  const auto got = workers_.Await(early);
  EXPECT_EQ(TestWorkers::ValueOf(got[1]), ValueOf(keys[1])) << "that get began before the set";
  EXPECT_FALSE(workers_[3].store.Find(keys[1]));
  EXPECT_TRUE(workers_[3].store.Find(keys[0]));
  EXPECT_EQ(workers_.Get(3, keys[1]), "newer");
}

TEST_F(GatherTest, LargeValuesComeByThemselvesAndMissingOnesAreToldAsSuch) {
  const auto keys = Keys(1, 4);
  SetAt(1, {keys[0]});
  SetAt(2, {keys[1]}, (64 << 10) + 1);
  SetAt(2, {keys[3]}, 64 << 10);
  EXPECT_THAT(workers_.GetMany(3, keys),
              ElementsAre(ValueOf(keys[0]), ValueOf(keys[1], (64 << 10) + 1), kNotFound,
                          ValueOf(keys[3], 64 << 10)));
  EXPECT_EQ(Messages(PeerMessage::kGet), 1);
}

TEST_F(GatherTest, MoreThanOneAnswerHoldsIsAskedForAgain) {
  const auto keys = Keys(1, 50);
  SetAt(1, keys, 64 << 10);  // 3.1 MiB
  ExpectAll(keys, 64 << 10);
  EXPECT_EQ(Messages(PeerMessage::kGetMany), 2);
  EXPECT_EQ(Messages(PeerMessage::kGet), 0);
}

TEST_F(GatherTest, ManyKeysGoInSeveralMessages) {
  const auto keys = Keys(1, 1100);
  SetAt(1, keys);
  ExpectAll(keys);
  EXPECT_EQ(Messages(PeerMessage::kGetMany), 3);
}

TEST_F(GatherTest, AKeyThatOccursTwiceIsFetchedOnce) {
  const auto keys = Keys(1, 2);
  SetAt(1, keys);
  EXPECT_THAT(workers_.GetMany(3, {keys[0], keys[1], keys[0]}),
              ElementsAre(ValueOf(keys[0]), ValueOf(keys[1]), ValueOf(keys[0])));
  EXPECT_EQ(Messages(PeerMessage::kGet), 0);
}

TEST_F(GatherTest, KeysThatDoNotExistYetAreWaitedFor) {
  const auto keys = Keys(1, 2);
  SetAt(1, {keys[0]});
  const auto get = workers_.StartGetMany(3, keys, seconds(20), TestWorkers::Deadline());
  ASSERT_TRUE(workers_.RunUntil([&] { return Messages(PeerMessage::kGet) == 1; }));
  EXPECT_FALSE(*get);
  SetAt(2, {keys[1]});
  for (const auto& got : workers_.Await(get)) EXPECT_TRUE(got.ok()) << got.status().ToString();
}

TEST_F(GatherTest, ASingleReaderDoesNotWaitForTheRestOfABatch) {
  std::vector<std::string> keys = {workers_.KeyAt(1), workers_.KeyAt(2)};
  SetAt(1, {keys[0]});
  SetAt(2, {keys[1]});
  int answers = 0;
  workers_.wire().hold = [&](PeerMessage type, bool answer) {
    return type == PeerMessage::kGetMany && answer && ++answers == 2;
  };
  const auto batch = workers_.StartGetMany(3, keys);
  ASSERT_TRUE(workers_.RunUntil([&] { return workers_.wire().held.size() == 1; }));
  EXPECT_EQ(workers_.Get(3, keys[0]), ValueOf(keys[0]));
  EXPECT_FALSE(*batch);
  workers_.wire().Release();
  workers_.Await(batch);
}

// What a peer of another version, or a hostile one, may answer: nothing is lost, and nothing hangs.
class GatherFromStranger : public GatherTest {
 protected:
  using Outcome = proto::PeerGetManyAnswer::Outcome;

  void AnswerBy(std::function<void(const transport::Request&)> answer) {
    workers_[1].transport.SetRequestHandler([this, answer](transport::Request request) {
      if (request.type == static_cast<uint16_t>(PeerMessage::kGetMany)) return answer(request);
      workers_[1].peer_service.Handle(std::move(request));
    });
  }
  void Respond(const transport::Request& request, const std::vector<Outcome>& outcomes,
               uint64_t size, std::string payload) {
    proto::PeerGetManyAnswer answer;
    for (const Outcome outcome : outcomes) {
      answer.items.push_back({.outcome = outcome, .version = 7, .size = size, .owner = 99});
    }
    auto bytes = std::make_shared<const std::string>(std::move(payload));
    transport::Payload sent;
    if (!bytes->empty()) sent.parts.push_back(std::as_bytes(std::span(*bytes)));
    sent.owner = bytes;
    workers_[1].transport.Respond(request.from, Status::OK(), answer.Encode(), sent);
  }
};

TEST_F(GatherFromStranger, WhoDoesNotKnowTheMessageIsAskedForEachKey) {
  const auto keys = Keys(1, 5);
  SetAt(1, keys);
  AnswerBy([&](const transport::Request& request) {
    workers_[1].transport.Respond(request.from, errors::NotSupported("unknown message"), "", {});
  });
  ExpectAll(keys);
  EXPECT_EQ(Messages(PeerMessage::kGet), 5);
}

TEST_F(GatherFromStranger, NonsenseIsNotBelieved) {
  const auto keys = Keys(1, 2);
  SetAt(1, keys);
  const auto value = Outcome::kValue;
  const std::vector<std::function<void(const transport::Request&)>> strangers = {
      [&](const auto& request) { Respond(request, {value}, 4, "1234"); },
      [&](const auto& request) { Respond(request, {value, value, value}, 4, "123412341234"); },
      [&](const auto& request) { Respond(request, {value, value}, 4, "1234123"); },
      [&](const auto& request) { Respond(request, {value, value}, 4, "123412345"); },
      [&](const auto& request) { Respond(request, {value, value}, uint64_t{1} << 63, "12"); },
      [&](const auto& request) { Respond(request, {value, value}, 0, "12"); },
      [&](const auto& request) { Respond(request, {value, value}, 4, ""); },
      [&](const auto& request) { Respond(request, {Outcome::kLater, Outcome::kLater}, 0, ""); },
      [&](const auto& request) {
        Respond(request, {Outcome::kElsewhere, Outcome::kElsewhere}, 0, "");
      },
      [&](const auto& request) {
        workers_[1].transport.Respond(request.from, Status::OK(), "\x0a\xff garbage", {});
      },
  };
  for (size_t i = 0; i < strangers.size(); ++i) {
    SCOPED_TRACE(i);
    AnswerBy(strangers[i]);
    ExpectAll(keys);
    for (const auto& key : keys) workers_[3].store.Erase(key, UINT64_MAX);
  }
  EXPECT_TRUE(NothingPinned());
}

TEST_F(GatherFromStranger, ASilentOneEndsTheGetByItsDeadline) {
  const auto keys = Keys(1, 2);
  SetAt(1, keys);
  AnswerBy([](const transport::Request&) {});
  const auto got = workers_.Await(workers_.StartGetMany(3, keys, milliseconds(50)));
  for (const auto& each : got) EXPECT_EQ(each.status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
}

TEST_F(GatherFromStranger, RequestsOfAStrangerAreRefusedByName) {
  const auto ask = [&](const std::string& body) {
    transport::Request request;
    request.type = static_cast<uint16_t>(PeerMessage::kGetMany);
    request.body = body;
    std::string sent = body;
    return workers_
        .Run(workers_[3].transport.Call(TestWorkers::IdOf(1), request.type, std::move(sent),
                                        TestWorkers::Deadline(), nullptr))
        .status()
        .GetCode();
  };
  proto::PeerGetMany empty{.epoch = 10, .items = {}};
  EXPECT_EQ(ask(empty.Encode()), K_INVALID);
  proto::PeerGetMany old{.epoch = 9, .items = {{.key = "key"}}};
  EXPECT_EQ(ask(old.Encode()), K_TRY_AGAIN);
  proto::PeerGetMany many{.epoch = 10, .items = std::vector<proto::PeerGetMany::Item>(10'001)};
  EXPECT_EQ(ask(many.Encode()), K_INVALID);
  EXPECT_EQ(ask("\x12\xff"), K_INVALID);
  proto::PeerGetMany illegal{.epoch = 10, .items = {{.key = std::string(2000, 'k')}, {.key = ""}}};
  EXPECT_EQ(ask(illegal.Encode()), K_OK) << "each is answered for itself";
}

TEST_F(GatherTest, WithoutRoomForAllAtOnceTheyComeOneByOne) {
  // More than the memory of the reader holds beside what must stay.
  for (int i = 0; i < 27; ++i) {
    ASSERT_TRUE(workers_.Set(3, workers_.KeyAt(3, i), std::string(1 << 20, 'x'),
                             {.evictable = true})
                    .IsOk());
  }
  const auto keys = Keys(1, 200);
  SetAt(1, keys, 60'000);  // 11 MiB
  ExpectAll(keys, 60'000);
}

}  // namespace
}  // namespace datasystem::worker
