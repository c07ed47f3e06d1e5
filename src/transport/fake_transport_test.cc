// The faults that the fake network can cause, and that it repeats itself.
#include <gtest/gtest.h>

#include "transport/test_cluster.h"

namespace datasystem::transport {
namespace {

constexpr uint16_t kEcho = 1;

class FakeNetworkTest : public ::testing::Test {
 protected:
  void Start(FakeTestCluster& cluster) {
    for (const PeerId& id : {a_, b_}) cluster.Add(id);
    cluster.Introduce({a_, b_});
    cluster.Serve(b_, [&cluster, this](Request request) {
      auto bytes = std::make_shared<const std::string>(PatternBytes(1000, 1));
      cluster.node(b_).Respond(request.from, Status::OK(), request.body, PayloadOf(bytes));
    });
  }
  Result<Answer> Ask(FakeTestCluster& cluster, Duration within = 1s) {
    return cluster.Call(a_, b_, kEcho, "x", within, std::make_shared<BufferTarget>());
  }

  const PeerId a_{"10.0.0.1:1", 1};
  const PeerId b_{"10.0.0.2:1", 2};
};

TEST_F(FakeNetworkTest, ACutIsNoticedByNobodyButTheDeadline) {
  FakeTestCluster cluster;
  Start(cluster);
  cluster.network().Cut(a_, b_);
  EXPECT_EQ(Ask(cluster).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  cluster.network().Heal(a_, b_);
  EXPECT_TRUE(Ask(cluster).ok());
}

TEST_F(FakeNetworkTest, AKilledNodeIsNoticedAtOnceAndRefusesConnections) {
  FakeTestCluster cluster;
  Start(cluster);
  cluster.Serve(b_, [](Request) {});
  auto outcome = cluster.Start(a_, b_, kEcho, "", 1h);
  cluster.network().RunFor(1ms);
  cluster.network().Kill(b_);
  EXPECT_EQ(cluster.Await(outcome, 1ms).status().GetCode(), K_RPC_PEER_DEAD);
  EXPECT_EQ(Ask(cluster).status().GetCode(), K_RPC_UNAVAILABLE);
}

TEST_F(FakeNetworkTest, APausedNodeAnswersWhenItGoesOn) {
  FakeTestCluster cluster;
  Start(cluster);
  cluster.network().Pause(b_);
  EXPECT_EQ(Ask(cluster).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  auto outcome = cluster.Start(a_, b_, kEcho, "y", 1h, std::make_shared<BufferTarget>());
  cluster.network().RunFor(1min);
  EXPECT_FALSE(outcome->has_value());
  cluster.network().Resume(b_);
  EXPECT_TRUE(cluster.Await(outcome).ok());
}

TEST_F(FakeNetworkTest, ATransferThatDoesNotEndIsCutAndLetsGoOfItsTarget) {
  FakeTestCluster cluster({.delay_min = 10ms, .delay_max = 10ms});
  Start(cluster);
  auto target = std::make_shared<BufferTarget>();
  auto outcome = cluster.Start(a_, b_, kEcho, "", 50ms, target);
  cluster.network().RunFor(25ms);  // the payload is prepared, its bytes are on their way
  ASSERT_EQ(target->bytes().size(), 1000U);
  cluster.network().Cut(a_, b_);
  EXPECT_EQ(cluster.Await(outcome).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_GT(target.use_count(), 1);
  cluster.network().RunFor(1s);
  EXPECT_EQ(target.use_count(), 1);
}

TEST_F(FakeNetworkTest, LostMessagesCostCallsAndNothingElse) {
  FakeTestCluster cluster({.seed = 11, .drop = 0.2, .reorder = true});
  Start(cluster);
  int answered = 0;
  for (int i = 0; i < 200; ++i) answered += Ask(cluster).ok() ? 1 : 0;
  EXPECT_GT(answered, 80);
  EXPECT_LT(answered, 170);
}

TEST_F(FakeNetworkTest, TheSameSeedGivesTheSameEvents) {
  auto run = [this](uint64_t seed) {
    FakeTestCluster cluster({.seed = seed, .drop = 0.1, .reorder = true});
    Start(cluster);
    std::string events;
    std::vector<TestCluster::Outcome> outcomes;
    for (int i = 0; i < 50; ++i) {
      outcomes.push_back(cluster.Start(a_, b_, kEcho, "", 1s, std::make_shared<BufferTarget>()));
    }
    for (auto& outcome : outcomes) {
      events += std::to_string(cluster.Await(outcome).ok()) + "@" +
                std::to_string(cluster.Now().time_since_epoch().count()) + " ";
    }
    return events;
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

}  // namespace
}  // namespace datasystem::transport
