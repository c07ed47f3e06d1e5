// What every Transport promises, whichever it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/test_cluster.h"

namespace datasystem::transport {
namespace {

using ::testing::HasSubstr;

constexpr uint16_t kEcho = 1;
constexpr uint16_t kFetch = 2;   // the body is the size of the payload to answer with
constexpr uint16_t kIgnore = 3;  // never answered
constexpr uint16_t kFail = 4;
constexpr uint16_t kPassOn = 5;

class Contract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "Ucx") {
      cluster_ = std::make_unique<UcxTestCluster>();
    } else {
      cluster_ = std::make_unique<FakeTestCluster>(FakeNetwork::Options{.seed = 3, .reorder = true});
    }
    for (const PeerId& id : {a_, b_, c_}) {
      cluster_->Add(id);
      Serve(id);
    }
    cluster_->Introduce({a_, b_, c_});
  }

  void Serve(const PeerId& id) {
    Transport& self = cluster_->node(id);
    cluster_->Serve(id, [this, &self](Request request) {
      switch (request.type) {
        case kEcho: return self.Respond(request.from, Status::OK(), "echo " + request.body);
        case kFetch: {
          auto bytes = std::make_shared<const std::string>(PatternBytes(std::stoull(request.body), 42));
          sent_ = bytes;
          ++fetches_served_;
          return self.Respond(request.from, Status::OK(), answer_body_, PayloadOf(bytes));
        }
        case kFail: return self.Respond(request.from, errors::NotFound("no {} here", request.body), "");
        case kPassOn: return self.Forward(request.from, c_, pass_on_as_, request.body);
        case kIgnore: ignored_.push_back(request); return;
      }
    });
  }

  bool SomethingIsIgnored() {
    return cluster_->Eventually([&] { return !ignored_.empty(); });
  }

  const PeerId a_{"127.0.0.1:1", 101};
  const PeerId b_{"127.0.0.1:2", 102};
  const PeerId c_{"127.0.0.1:3", 103};
  std::string answer_body_ = "here";
  uint16_t pass_on_as_ = kEcho;
  std::weak_ptr<const std::string> sent_;
  int fetches_served_ = 0;
  std::vector<Request> ignored_;
  std::unique_ptr<TestCluster> cluster_;
};

INSTANTIATE_TEST_SUITE_P(Transport, Contract, ::testing::Values("Ucx", "Fake"),
                         [](const auto& each) { return each.param; });

TEST_P(Contract, ACallGetsItsAnswer) {
  const Result<Answer> answer = cluster_->Call(a_, b_, kEcho, "hello");
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->body, "echo hello");
  EXPECT_EQ(answer->payload_size, 0U);
  EXPECT_EQ(answer->from, b_);
}

TEST_P(Contract, BodiesOfAllSizesArriveWhole) {
  for (size_t size : {0UL, 1UL, 100UL, 8000UL, 16UL << 10, 300UL << 10, Transport::kBodyMax - 5}) {
    const std::string body = PatternBytes(size, size);
    const Result<Answer> answer = cluster_->Call(a_, b_, kEcho, body);
    ASSERT_TRUE(answer.ok()) << size << " " << answer.status().ToString();
    ASSERT_TRUE(answer->body == "echo " + body) << size;
  }
}

TEST_P(Contract, ARequestThatIsTooLargeIsRefused) {
  const auto answer = cluster_->Call(a_, b_, kEcho, std::string(Transport::kBodyMax + 1, 'x'));
  EXPECT_EQ(answer.status().GetCode(), K_INVALID);
}

TEST_P(Contract, AnAnswerThatIsTooLargeBecomesAnError) {
  const auto answer = cluster_->Call(a_, b_, kEcho, std::string(Transport::kBodyMax, 'x'));
  EXPECT_EQ(answer.status().GetCode(), K_OUT_OF_RANGE);
}

TEST_P(Contract, AnErrorStatusArrivesWithCodeAndText) {
  const Result<Answer> answer = cluster_->Call(a_, b_, kFail, "object k");
  EXPECT_EQ(answer.status().GetCode(), K_NOT_FOUND);
  EXPECT_EQ(answer.status().GetMsg(), "no object k here");
}

TEST_P(Contract, PayloadOfAllSizesLandsInTheTarget) {
  for (size_t size : {1UL, 63UL, 4096UL, 100UL << 10, (256UL << 10) - 1, 256UL << 10, 1UL << 20, 64UL << 20}) {
    auto target = std::make_shared<BufferTarget>();
    const Result<Answer> answer = cluster_->Call(a_, b_, kFetch, std::to_string(size), 20s, target);
    ASSERT_TRUE(answer.ok()) << size << " " << answer.status().ToString();
    EXPECT_EQ(answer->payload_size, size);
    EXPECT_EQ(answer->body, "here");
    EXPECT_EQ(target->body(), "here");
    ASSERT_TRUE(target->bytes() == PatternBytes(size, 42)) << size;
  }
}

TEST_P(Contract, ALargeBodyArrivesBeforeItsPayloadIsPrepared) {
  answer_body_ = PatternBytes(200 << 10, 7);
  for (size_t size : {1UL, 1UL << 20}) {
    auto target = std::make_shared<BufferTarget>();
    const Result<Answer> answer = cluster_->Call(a_, b_, kFetch, std::to_string(size), 20s, target);
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_TRUE(answer->body == answer_body_);
    EXPECT_TRUE(target->body() == answer_body_);
    EXPECT_TRUE(target->bytes() == PatternBytes(size, 42));
  }
}

TEST_P(Contract, PayloadIsGatheredFromManyParts) {
  auto bytes = std::make_shared<const std::string>(PatternBytes(3 << 20, 9));
  cluster_->Serve(b_, [&](Request request) {
    Payload payload;
    payload.owner = bytes;
    const auto all = std::as_bytes(std::span(*bytes));
    for (size_t at = 0, part = 0; at < all.size(); at += part) {
      part = std::min<size_t>(all.size() - at, 1 + at % 77777);
      payload.parts.push_back(all.subspan(at, part));
      payload.parts.push_back({});
    }
    cluster_->node(b_).Respond(request.from, Status::OK(), "", payload);
  });
  auto target = std::make_shared<BufferTarget>();
  const Result<Answer> answer = cluster_->Call(a_, b_, kFetch, "", 20s, target);
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_TRUE(target->bytes() == *bytes);
}

// Pieces of many sizes, the last one with room to spare.
class ScatteringTarget final : public PayloadTarget {
 public:
  Result<Places> Prepare(std::string_view, uint64_t size) override {
    Places places;
    for (uint64_t at = 0, piece = 0; at < size; at += piece) {
      piece = 1 + at % 55555;
      pieces_.emplace_back(piece, '\0');
    }
    for (std::string& piece : pieces_) places.push_back(std::as_writable_bytes(std::span(piece)));
    return places;
  }
  std::string bytes() const {
    std::string all;
    for (const std::string& piece : pieces_) all += piece;
    return all;
  }

 private:
  std::vector<std::string> pieces_;
};

TEST_P(Contract, PayloadIsScatteredOverManyPlaces) {
  for (size_t size : {1UL, 3000UL, 100UL << 10, 1UL << 20, 5UL << 20}) {
    auto target = std::make_shared<ScatteringTarget>();
    const Result<Answer> answer = cluster_->Call(a_, b_, kFetch, std::to_string(size), 20s, target);
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_EQ(answer->payload_size, size);
    EXPECT_TRUE(target->bytes().substr(0, size) == PatternBytes(size, 42)) << size;
    EXPECT_EQ(target->bytes().find_first_not_of('\0', size), std::string::npos) << "beyond the end";
  }
}

TEST_P(Contract, ThePayloadsOwnerIsReleasedWhenItHasLeft) {
  auto target = std::make_shared<BufferTarget>();
  ASSERT_TRUE(cluster_->Call(a_, b_, kFetch, "5000000", 20s, target).ok());
  EXPECT_TRUE(cluster_->Eventually([&] { return sent_.expired(); }));
}

TEST_P(Contract, ARefusedPayloadEndsTheCallAndReleasesItsOwner) {
  for (const char* size : {"1000", "5000000"}) {
    auto target = std::make_shared<BufferTarget>(10);
    const Result<Answer> answer = cluster_->Call(a_, b_, kFetch, size, 20s, target);
    EXPECT_EQ(answer.status().GetCode(), K_OUT_OF_MEMORY);
    EXPECT_TRUE(cluster_->Eventually([&] { return sent_.expired(); }));
    EXPECT_EQ(cluster_->Call(a_, b_, kFetch, size).status().GetCode(), K_INVALID) << "no target at all";
  }
  EXPECT_TRUE(cluster_->Call(a_, b_, kEcho, "still there").ok());
}

TEST_P(Contract, ManyCallsAtOnceAreToldApart) {
  std::vector<TestCluster::Outcome> outcomes;
  std::vector<std::shared_ptr<BufferTarget>> targets;
  for (int i = 0; i < 200; ++i) {
    targets.push_back(std::make_shared<BufferTarget>());
    outcomes.push_back(cluster_->Start(a_, i % 2 == 0 ? b_ : c_, kFetch, std::to_string(1 + i * 5000), 20s,
                                       targets.back()));
  }
  for (int i = 0; i < 200; ++i) {
    const Result<Answer> answer = cluster_->Await(outcomes[i]);
    ASSERT_TRUE(answer.ok()) << i << " " << answer.status().ToString();
    ASSERT_TRUE(targets[i]->bytes() == PatternBytes(1 + i * 5000, 42)) << i;
  }
}

TEST_P(Contract, AForwardedRequestIsAnsweredByTheOther) {
  const Result<Answer> answer = cluster_->Call(a_, b_, kPassOn, "x");
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->body, "echo x");
  EXPECT_EQ(answer->from, c_);

  pass_on_as_ = kFetch;
  auto target = std::make_shared<BufferTarget>();
  ASSERT_TRUE(cluster_->Call(a_, b_, kPassOn, "700000", 20s, target).ok());
  EXPECT_TRUE(target->bytes() == PatternBytes(700000, 42));
}

TEST_P(Contract, ForwardingToAPeerThatIsNoMemberEndsTheCall) {
  cluster_->SetPeers(b_, {a_});
  EXPECT_EQ(cluster_->Call(a_, b_, kPassOn, "x").status().GetCode(), K_RPC_PEER_DEAD);
}

TEST_P(Contract, ForwardingToTheCallerEndsTheCall) {
  cluster_->Serve(b_, [&](Request request) { cluster_->node(b_).Forward(request.from, a_, kEcho, ""); });
  EXPECT_EQ(cluster_->Call(a_, b_, kPassOn, "x").status().GetCode(), K_TRY_AGAIN);
}

TEST_P(Contract, TheDeathOfTheOneForwardedToEndsTheCall) {
  pass_on_as_ = kIgnore;
  auto outcome = cluster_->Start(a_, b_, kPassOn, "x");
  ASSERT_TRUE(SomethingIsIgnored());
  cluster_->Destroy(c_);
  EXPECT_EQ(cluster_->Await(outcome).status().GetCode(), K_RPC_PEER_DEAD);
}

TEST_P(Contract, ACallEndsByItsDeadline) {
  const TimePoint start = cluster_->Now();
  EXPECT_EQ(cluster_->Call(a_, b_, kIgnore, "", 50ms).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_GE(cluster_->Now() - start, 50ms);
  EXPECT_LT(cluster_->Now() - start, 5s);
  EXPECT_EQ(cluster_->Call(a_, b_, kEcho, "", -1ms).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
}

TEST_P(Contract, AnAnswerAfterTheDeadlineIsDroppedWithItsPayload) {
  auto target = std::make_shared<BufferTarget>();
  EXPECT_EQ(cluster_->Call(a_, b_, kIgnore, "", 20ms, target).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  ASSERT_TRUE(SomethingIsIgnored());
  for (size_t size : {100UL, 5UL << 20}) {
    auto bytes = std::make_shared<const std::string>(PatternBytes(size, 1));
    sent_ = bytes;
    cluster_->Do([&] {
      cluster_->node(b_).Respond(ignored_[0].from, Status::OK(), "late", PayloadOf(std::move(bytes)));
    });
    EXPECT_TRUE(cluster_->Eventually([&] { return sent_.expired(); })) << size;
  }
  EXPECT_TRUE(target->bytes().empty());
  EXPECT_EQ(target.use_count(), 1);
}

TEST_P(Contract, ASecondAnswerIsIgnored) {
  cluster_->Serve(b_, [&](Request request) {
    cluster_->node(b_).Respond(request.from, Status::OK(), "first");
    cluster_->node(b_).Respond(request.from, Status::OK(), "second");
  });
  for (int i = 0; i < 10; ++i) {
    const Result<Answer> answer = cluster_->Call(a_, b_, kEcho, "");
    ASSERT_TRUE(answer.ok());
    EXPECT_THAT(answer->body, ::testing::AnyOf("first", "second"));
  }
}

TEST_P(Contract, APeerThatIsNoMemberIsUnavailable) {
  const Result<Answer> answer = cluster_->Call(a_, {"127.0.0.1:9", 999}, kEcho, "");
  EXPECT_EQ(answer.status().GetCode(), K_RPC_UNAVAILABLE);
  EXPECT_THAT(answer.status().GetMsg(), HasSubstr("127.0.0.1:9"));
}

TEST_P(Contract, CallsToAPeerThatLeavesEndAtOnce) {
  auto outcome = cluster_->Start(a_, b_, kIgnore, "");
  ASSERT_TRUE(SomethingIsIgnored());
  cluster_->SetPeers(a_, {c_});
  EXPECT_EQ(cluster_->Await(outcome).status().GetCode(), K_RPC_PEER_DEAD);
  EXPECT_EQ(cluster_->Call(a_, b_, kEcho, "").status().GetCode(), K_RPC_PEER_DEAD);
}

TEST_P(Contract, APeerThatReturnsIsReachedAgain) {
  ASSERT_TRUE(cluster_->Call(a_, b_, kEcho, "").ok());
  cluster_->SetPeers(a_, {c_});
  cluster_->SetPeers(a_, {b_, c_});
  // The other side may notice the cut only now, and cut its own half of the new connection.
  Result<Answer> answer = errors::Runtime("");
  for (int i = 0; i < 20 && !answer.ok(); ++i) answer = cluster_->Call(a_, b_, kEcho, "", 500ms);
  EXPECT_TRUE(answer.ok()) << answer.status().ToString();
}

TEST_P(Contract, TheDeathOfThePeerEndsItsCalls) {
  auto outcome = cluster_->Start(a_, b_, kIgnore, "");
  ASSERT_TRUE(SomethingIsIgnored());
  cluster_->Destroy(b_);
  EXPECT_EQ(cluster_->Await(outcome).status().GetCode(), K_RPC_PEER_DEAD);
}

TEST_P(Contract, ARestartedPeerIsAnotherOne) {
  const PeerId again{b_.address, 202};
  ASSERT_TRUE(cluster_->Call(a_, b_, kEcho, "").ok());
  cluster_->Destroy(b_);
  cluster_->Add(again);
  Serve(again);
  cluster_->Introduce({a_, again, c_});
  EXPECT_TRUE(cluster_->Call(a_, again, kEcho, "").ok());
  EXPECT_EQ(cluster_->Call(a_, b_, kEcho, "").status().GetCode(), K_RPC_PEER_DEAD);
}

TEST_P(Contract, ACallMeantForAnEarlierLifeIsToldToTryAgain) {
  // a_ believes that b_'s address still belongs to its earlier life.
  const PeerId earlier{b_.address, 77};
  Peer stale = cluster_->PeerOf(b_);
  stale.id = earlier;
  if (GetParam() == "Fake") GTEST_SKIP() << "the fake finds nodes by incarnation";
  cluster_->Do([&] { cluster_->node(a_).SetPeers({stale}); });
  EXPECT_EQ(cluster_->Call(a_, earlier, kEcho, "", 5s).status().GetCode(), K_TRY_AGAIN);
}

TEST_P(Contract, ARequestWaitsUntilItsSenderIsAnnounced) {
  const PeerId late{"127.0.0.1:4", 104};
  cluster_->Add(late);
  cluster_->SetPeers(late, {a_, b_, c_});
  auto outcome = cluster_->Start(late, b_, kEcho, "early");
  auto before = cluster_->Start(late, c_, kIgnore, "", 300ms);
  EXPECT_EQ(cluster_->Await(before).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_TRUE(ignored_.empty());
  cluster_->SetPeers(b_, {a_, c_, late});
  const Result<Answer> answer = cluster_->Await(outcome);
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->body, "echo early");
}

TEST_P(Contract, APayloadWaitsUntilItsSenderIsAnnounced) {
  // a_ asks b_, which hands on to a peer that a_ does not know yet.
  uint64_t incarnation = 104;
  for (const char* size : {"100", "3000000"}) {
    const PeerId late{"127.0.0.1:4", incarnation++};
    cluster_->Add(late);
    Serve(late);
    cluster_->SetPeers(late, {a_, b_});
    cluster_->SetPeers(b_, {a_, late});
    cluster_->Serve(b_, [&](Request request) {
      cluster_->node(b_).Forward(request.from, late, kFetch, request.body);
    });
    auto target = std::make_shared<BufferTarget>();
    const int before = fetches_served_;
    auto outcome = cluster_->Start(a_, b_, kPassOn, size, 20s, target);
    ASSERT_TRUE(cluster_->Eventually([&] { return fetches_served_ > before; }));
    cluster_->SetPeers(a_, {b_, late});
    const Result<Answer> answer = cluster_->Await(outcome);
    ASSERT_TRUE(answer.ok()) << size << " " << answer.status().ToString();
    EXPECT_TRUE(target->bytes() == PatternBytes(std::stoull(size), 42));
    EXPECT_EQ(answer->from, late);
    sent_.reset();
  }
}

TEST_P(Contract, ARequestOfAStrangerIsForgottenAfterAWhile) {
  const PeerId stranger{"127.0.0.1:4", 104};
  cluster_->Add(stranger);
  cluster_->SetPeers(stranger, {b_});
  EXPECT_EQ(cluster_->Call(stranger, b_, kIgnore, "", Messenger::kParkedFor + 500ms).status().GetCode(),
            K_RPC_DEADLINE_EXCEEDED);
  cluster_->SetPeers(b_, {a_, c_, stranger});
  EXPECT_TRUE(cluster_->Call(stranger, b_, kEcho, "").ok());
  EXPECT_TRUE(ignored_.empty());
}

TEST_P(Contract, ARequestOfOneThatHasLeftWaitsInCaseItJoinsAgain) {
  cluster_->SetPeers(b_, {c_});
  (void)cluster_->Call(a_, b_, kEcho, "", 300ms);  // notices that the connection is cut
  auto outcome = cluster_->Start(a_, b_, kEcho, "back", 10s);
  ASSERT_TRUE(cluster_->Call(a_, c_, kEcho, "").ok());  // by now it is there
  cluster_->SetPeers(b_, {a_, c_});
  EXPECT_TRUE(cluster_->Await(outcome).ok());
}

TEST_P(Contract, WithoutAHandlerRequestsAreAnsweredWithNotReady) {
  const PeerId fresh{"127.0.0.1:4", 104};
  cluster_->Add(fresh);
  cluster_->Introduce({a_, fresh});
  EXPECT_EQ(cluster_->Call(a_, fresh, kEcho, "").status().GetCode(), K_NOT_READY);
}

TEST_P(Contract, PeersTellsLaneAndCounts) {
  auto target = std::make_shared<BufferTarget>();
  ASSERT_TRUE(cluster_->Call(a_, b_, kFetch, "3000000", 20s, target).ok());
  (void)cluster_->Call(a_, b_, kFail, "");
  std::vector<PeerStatus> peers;
  ASSERT_TRUE(cluster_->Eventually([&] {
    peers = cluster_->node(a_).peers();
    return !peers[0].lane.empty();
  }));
  EXPECT_EQ(peers[0].id, b_);
  EXPECT_EQ(peers[0].lane, GetParam() == "Ucx" ? "tcp/lo" : "fake");
  EXPECT_EQ(peers[0].calls, 2U);
  EXPECT_EQ(peers[0].failures, 1U);
  EXPECT_EQ(peers[0].payload_bytes_received, 3000000U);
  EXPECT_EQ(peers[1].id, c_);
}

TEST_P(Contract, DestroyingTheTransportEndsItsCalls) {
  auto outcome = cluster_->Start(a_, b_, kIgnore, "");
  ASSERT_TRUE(SomethingIsIgnored());
  cluster_->Destroy(a_);
  EXPECT_EQ(cluster_->Await(outcome).status().GetCode(), K_SHUTTING_DOWN);
}

}  // namespace
}  // namespace datasystem::transport
