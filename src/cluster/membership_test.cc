// Membership over a real etcd: joins and leaves, epochs, fencing, and what becomes of them when
// etcd is killed, paused, compacted or written to by others.
#include "cluster/membership.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>

#include "base/log.h"
#include "base/random.h"
#include "cluster/embedded_store.h"
#include "cluster/etcd_process.h"
#include "cluster/etcd_store.h"
#include "cluster/eventually.h"
#include "cluster/registration.h"

namespace datasystem::cluster {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kPrefix[] = "/datasystem/test/workers/";

Member Worker(const std::string& address) {
  return {.address = address, .incarnation = RandomId(), .endpoint = "\x01\x02", .version = "1"};
}

// A worker's side of a Membership: its own connection to the store, and what the callbacks said.
class TestWorker {
 public:
  explicit TestWorker(std::string address) : self(Worker(address)) {}
  ~TestWorker() { membership.reset(); }

  Status Join(std::unique_ptr<LeaseStore> over, std::chrono::seconds ttl = 10s,
              std::chrono::milliseconds store_timeout = 3000ms) {
    store = std::move(over);
    const MembershipEvents events{.on_view =
                                      [this](View view) {
                                        const std::lock_guard lock(mutex_);
                                        if (!views_.empty() && view.epoch <= views_.rbegin()->first)
                                          epochs_went_back_ = true;
                                        views_[view.epoch] = view.members;
                                      },
                                  .on_valid_until =
                                      [this](TimePoint until) {
                                        const std::lock_guard lock(mutex_);
                                        valid_until_ = until;
                                      },
                                  .on_lost =
                                      [this](const Status& why) {
                                        const std::lock_guard lock(mutex_);
                                        lost_.push_back(why);
                                      }};
    auto joined = Membership::Join(*store, self,
                                   {.prefix = kPrefix,
                                    .lease_ttl = ttl,
                                    .renew_interval = 100ms,
                                    .store_timeout = store_timeout},
                                   events);
    if (!joined.ok()) return joined.status();
    membership = *std::move(joined);
    return Status::OK();
  }
  Status Rejoin() {
    self.incarnation = RandomId();
    return membership->Rejoin(self);
  }

  std::vector<std::string> addresses() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> addresses;
    if (views_.empty()) return addresses;
    for (const Member& member : views_.rbegin()->second) addresses.push_back(member.address);
    return addresses;
  }
  bool Sees(const std::vector<std::string>& expected) {
    return Eventually(15s, [&] { return addresses() == expected; });
  }
  uint64_t epoch() {
    const std::lock_guard lock(mutex_);
    return views_.empty() ? 0 : views_.rbegin()->first;
  }
  std::map<uint64_t, std::vector<Member>> views() {
    const std::lock_guard lock(mutex_);
    return views_;
  }
  TimePoint valid_until() {
    const std::lock_guard lock(mutex_);
    return valid_until_;
  }
  bool Renews() {
    const TimePoint before = valid_until();
    return Eventually(15s, [&] { return valid_until() > before; });
  }
  std::vector<Status> lost() {
    const std::lock_guard lock(mutex_);
    return lost_;
  }
  bool IsLost() {
    return Eventually(15s, [&] { return !lost().empty(); });
  }
  bool epochs_went_back() {
    const std::lock_guard lock(mutex_);
    return epochs_went_back_;
  }

  Member self;
  std::unique_ptr<LeaseStore> store;
  std::unique_ptr<Membership> membership;

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::vector<Member>> views_;
  TimePoint valid_until_;
  std::vector<Status> lost_;
  bool epochs_went_back_ = false;
};

// Where two workers have the same epoch they must have the same members.
void ExpectAgreement(TestWorker& one, TestWorker& other) {
  const auto others = other.views();
  int common = 0;
  for (const auto& [epoch, members] : one.views()) {
    const auto found = others.find(epoch);
    if (found == others.end()) continue;
    ++common;
    EXPECT_EQ(members, found->second) << "epoch " << epoch;
  }
  EXPECT_GT(common, 0);
  EXPECT_FALSE(one.epochs_went_back());
  EXPECT_FALSE(other.epochs_went_back());
}

class MembershipTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(StartLogging({}), ""); }
  void SetUp() override {
    auto started = EtcdProcess::Start();
    ASSERT_TRUE(started.ok()) << started.status().ToString();
    etcd = *std::move(started);
  }
  std::unique_ptr<LeaseStore> Connect() {
    return ConnectEtcd({.endpoints = etcd->address()}).value();
  }
  std::string Key(const TestWorker& worker) { return kPrefix + worker.self.address; }
  // The lease that holds the worker's registration, as etcdctl writes it.
  std::string LeaseOf(const TestWorker& worker) {
    const auto snapshot =
        worker.store->RangePrefix(Key(worker), 0, {.deadline = Clock::Steady().Now() + 5s});
    return snapshot.ok() && snapshot->entries.size() == 1
               ? fmt::format("{:x}", snapshot->entries[0].lease)
               : "none";
  }

  std::unique_ptr<EtcdProcess> etcd;
  TestWorker a{"10.0.0.1:1"}, b{"10.0.0.2:1"}, c{"10.0.0.3:1"};
};

TEST_F(MembershipTest, WorkersSeeTheSameMembersAtTheSameEpoch) {
  ASSERT_TRUE(a.Join(Connect()).IsOk());
  EXPECT_THAT(a.addresses(), ElementsAre("10.0.0.1:1"))
      << "the first view comes before Join returns";
  ASSERT_TRUE(b.Join(Connect()).IsOk());
  EXPECT_THAT(b.addresses(), ElementsAre("10.0.0.1:1", "10.0.0.2:1"));
  ASSERT_TRUE(c.Join(Connect()).IsOk());
  const std::vector<std::string> all{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};
  EXPECT_TRUE(a.Sees(all) && b.Sees(all) && c.Sees(all));
  EXPECT_EQ(a.epoch(), c.epoch());
  EXPECT_EQ(b.epoch(), c.epoch());
  EXPECT_EQ(a.views()[a.epoch()], (std::vector<Member>{a.self, b.self, c.self}));
  ASSERT_TRUE(b.membership->Leave().IsOk());
  EXPECT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.3:1"}) && c.Sees({"10.0.0.1:1", "10.0.0.3:1"}));
  EXPECT_EQ(a.epoch(), c.epoch());
  ExpectAgreement(a, b);
  ExpectAgreement(a, c);
}

TEST_F(MembershipTest, AJoinerSeesTheEpochOfALeaveBeforeIt) {
  ASSERT_TRUE(a.Join(Connect()).IsOk());
  ASSERT_TRUE(b.Join(Connect()).IsOk());
  ASSERT_TRUE(b.membership->Leave().IsOk());
  ASSERT_TRUE(c.Join(Connect()).IsOk());
  EXPECT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.3:1"}));
  EXPECT_EQ(a.epoch(), c.epoch());
  ExpectAgreement(a, c);
}

TEST_F(MembershipTest, LeavesFastAndLeavesNothingBehind) {
  ASSERT_TRUE(a.Join(Connect()).IsOk());
  const std::string lease = LeaseOf(a);
  const TimePoint begin = Clock::Steady().Now();
  EXPECT_TRUE(a.membership->Leave().IsOk());
  EXPECT_LT(Clock::Steady().Now() - begin, 1s);
  EXPECT_TRUE(a.membership->Leave().IsOk());
  EXPECT_EQ(LeaseOf(a), "none");
  EXPECT_THAT(etcd->Ctl({"lease", "list"}).value(), Not(HasSubstr(lease)));
  EXPECT_EQ(a.Rejoin().GetCode(), K_SHUTTING_DOWN);
}

TEST_F(MembershipTest, IsValidForLessThanTheLeaseAndRenewsIt) {
  const TimePoint begin = Clock::Steady().Now();
  ASSERT_TRUE(a.Join(Connect(), 10s).IsOk());
  EXPECT_GT(a.valid_until(), begin + 5s);
  EXPECT_LE(a.valid_until(), Clock::Steady().Now() + 9s);
  EXPECT_TRUE(a.Renews());
  EXPECT_LE(a.valid_until(), Clock::Steady().Now() + 9s);
}

TEST_F(MembershipTest, GoesOnWhenEtcdWasKilledAndRestarted) {
  ASSERT_TRUE(a.Join(Connect()).IsOk());
  ASSERT_TRUE(b.Join(Connect()).IsOk());
  etcd->Kill();
  ASSERT_TRUE(etcd->Restart().IsOk());
  EXPECT_TRUE(a.Renews() && b.Renews());
  ASSERT_TRUE(c.Join(Connect()).IsOk());
  const std::vector<std::string> all{"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};
  EXPECT_TRUE(a.Sees(all) && b.Sees(all) && c.Sees(all));
  EXPECT_TRUE(a.lost().empty() && b.lost().empty());
  ExpectAgreement(a, c);
  ExpectAgreement(b, c);
}

TEST_F(MembershipTest, SaysOnceWhatIsLostWhileEtcdIsDownAndThenLeavesAtOnce) {
  ASSERT_TRUE(a.Join(Connect(), 10s, 200ms).IsOk());
  testing::internal::CaptureStderr();
  etcd->Kill();
  const TimePoint killed = Clock::Steady().Now();
  // Long enough for several renewals to fail.
  Eventually(1500ms, [] { return false; });
  const TimePoint begin = Clock::Steady().Now();
  EXPECT_LE(a.valid_until(), killed + 9s) << "no renewal without etcd";
  EXPECT_EQ(a.membership->Leave().GetCode(), K_KVSTORE_ERROR);
  EXPECT_LT(Clock::Steady().Now() - begin, 500ms);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("no joins or leaves are seen"));
  // Reset, if a renewal was under way.
  EXPECT_THAT(log, testing::AnyOf(HasSubstr("connection refused"), HasSubstr("connection reset")));
  EXPECT_EQ(log.find("unreachable"), log.rfind("unreachable")) << log;
  EXPECT_TRUE(a.lost().empty()) << "nobody knows yet";
}

TEST_F(MembershipTest, SaysOnceThatEtcdIsBack) {
  ASSERT_TRUE(a.Join(Connect(), 10s, 200ms).IsOk());
  testing::internal::CaptureStderr();
  ASSERT_TRUE(etcd->RestartElsewhere().IsOk());
  Eventually(500ms, [] { return false; });
  ASSERT_TRUE(etcd->Restart().IsOk());
  EXPECT_TRUE(a.Renews() && a.Renews());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("cluster store is back"));
  EXPECT_EQ(log.find("store is back"), log.rfind("store is back")) << log;
}

TEST_F(MembershipTest, IsLostOnceWhenTheLeaseExpiredAndCanRejoin) {
  ASSERT_TRUE(a.Join(Connect(), 2s, 500ms).IsOk());
  ASSERT_TRUE(b.Join(Connect(), 60s, 500ms).IsOk());
  ASSERT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.2:1"}));
  etcd->Pause();
  const TimePoint paused = Clock::Steady().Now();
  ASSERT_TRUE(Eventually(10s, [&] { return Clock::Steady().Now() > paused + 2500ms; }));
  EXPECT_LT(a.valid_until(), Clock::Steady().Now())
      << "fenced before etcd can have ended the lease";
  etcd->Resume();
  ASSERT_TRUE(a.IsLost());
  EXPECT_EQ(a.lost()[0].GetCode(), K_KVSTORE_ERROR);
  EXPECT_TRUE(b.Sees({"10.0.0.2:1"}));
  const uint64_t before = a.epoch();
  ASSERT_TRUE(a.Rejoin().IsOk());
  EXPECT_EQ(a.Rejoin().GetCode(), K_INVALID) << "it is registered";
  EXPECT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.2:1"}) && b.Sees({"10.0.0.1:1", "10.0.0.2:1"}));
  EXPECT_TRUE(Eventually(10s, [&] { return a.epoch() > before && a.epoch() == b.epoch(); }));
  EXPECT_TRUE(a.Renews());
  EXPECT_EQ(a.lost().size(), 1);
  EXPECT_TRUE(b.lost().empty());
  ExpectAgreement(a, b);
}

TEST_F(MembershipTest, IsLostWhenSomebodyRevokesTheLeaseOrDeletesTheKey) {
  ASSERT_TRUE(a.Join(Connect()).IsOk());
  ASSERT_TRUE(b.Join(Connect()).IsOk());
  ASSERT_TRUE(etcd->Ctl({"lease", "revoke", LeaseOf(a)}).ok());
  ASSERT_TRUE(etcd->Ctl({"del", Key(b)}).ok());
  EXPECT_TRUE(a.IsLost() && b.IsLost());
  EXPECT_TRUE(a.Rejoin().IsOk() && b.Rejoin().IsOk());
  EXPECT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.2:1"}) && b.Sees({"10.0.0.1:1", "10.0.0.2:1"}));
  EXPECT_EQ(a.lost().size(), 1);
  EXPECT_EQ(b.lost().size(), 1);
}

TEST_F(MembershipTest, CanRejoinFromTheCallback) {
  auto store = Connect();
  std::atomic<int> views = 0, losses = 0;
  std::atomic<bool> rejoined = false;
  std::unique_ptr<Membership> membership;
  membership = Membership::Join(*store, a.self, {.prefix = kPrefix, .lease_ttl = 10s},
                                {.on_view = [&](const View&) { ++views; },
                                 .on_lost =
                                     [&](const Status&) {
                                       ++losses;
                                       rejoined = membership->Rejoin(Worker("10.0.0.1:1")).IsOk();
                                     }})
                   .value();
  ASSERT_TRUE(etcd->Ctl({"del", Key(a)}).ok());
  EXPECT_TRUE(Eventually(10s, [&] { return rejoined && views == 2; }));
  EXPECT_EQ(losses, 1);
}

TEST_F(MembershipTest, TheLatestToRegisterAnAddressHasIt) {
  TestWorker successor("10.0.0.1:1");
  ASSERT_TRUE(a.Join(Connect()).IsOk());
  ASSERT_TRUE(b.Join(Connect()).IsOk());
  ASSERT_TRUE(successor.Join(Connect()).IsOk());
  ASSERT_TRUE(a.IsLost());
  EXPECT_EQ(a.lost()[0].GetCode(), K_DUPLICATED);
  EXPECT_THAT(a.lost()[0].GetMsg(), HasSubstr("10.0.0.1:1"));
  // The one that was replaced takes nothing with it.
  EXPECT_TRUE(a.membership->Leave().IsOk());
  ASSERT_TRUE(c.Join(Connect()).IsOk());
  ASSERT_TRUE(b.Sees({"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}));
  EXPECT_EQ(b.views()[b.epoch()][0].incarnation, successor.self.incarnation);
  EXPECT_TRUE(successor.lost().empty());
}

TEST_F(MembershipTest, IgnoresAMalformedRegistrationWithOneWarning) {
  ASSERT_TRUE(a.Join(Connect()).IsOk());
  testing::internal::CaptureStderr();
  ASSERT_TRUE(etcd->Ctl({"put", kPrefix + std::string("10.0.0.9:1"), "{\"format\":1}"}).ok());
  ASSERT_TRUE(b.Join(Connect()).IsOk());
  EXPECT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.2:1"}) && b.Sees({"10.0.0.1:1", "10.0.0.2:1"}));
  ASSERT_TRUE(c.Join(Connect()).IsOk());
  EXPECT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}));
  const std::string log = testing::internal::GetCapturedStderr();
  size_t warnings = 0;
  for (size_t at = 0; (at = log.find("10.0.0.9:1", at)) != log.npos; ++at) ++warnings;
  EXPECT_EQ(warnings, 3) << "one a worker: " << log;
  ExpectAgreement(a, b);
}

TEST_F(MembershipTest, CatchesUpWhenWhatItMissedWasCompacted) {
  ASSERT_TRUE(a.Join(Connect()).IsOk());
  ASSERT_TRUE(b.Join(Connect()).IsOk());
  ASSERT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.2:1"}));
  const uint64_t before = a.epoch();
  ASSERT_TRUE(etcd->RestartElsewhere().IsOk());
  ASSERT_TRUE(etcd->Ctl({"del", Key(b)}).ok());
  ASSERT_TRUE(etcd->Ctl({"compact", std::to_string(before + 1)}).ok());
  ASSERT_TRUE(etcd->Restart().IsOk());
  EXPECT_TRUE(a.Sees({"10.0.0.1:1"}) && b.IsLost());
  EXPECT_GT(a.epoch(), before + 1) << "it dated the deletion by a registration of its own";
  ASSERT_TRUE(c.Join(Connect()).IsOk());
  EXPECT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.3:1"}));
  EXPECT_TRUE(Eventually(10s, [&] { return a.epoch() == c.epoch(); }));
  EXPECT_TRUE(a.lost().empty());
  ExpectAgreement(a, c);
}

TEST_F(MembershipTest, RefusesToJoinWithAnUnreachableStoreInTime) {
  etcd->Kill();
  const TimePoint begin = Clock::Steady().Now();
  const Status status = a.Join(Connect(), 10s, 500ms);
  EXPECT_LT(Clock::Steady().Now() - begin, 2s);
  EXPECT_EQ(status.GetCode(), K_KVSTORE_ERROR);
  EXPECT_THAT(status.GetMsg(), HasSubstr("cannot reach etcd at " + etcd->address() +
                                         " within 500 ms: connection refused; is it running"));
}

TEST_F(MembershipTest, JoinsThroughTheSecondEndpointWhenTheFirstIsDead) {
  auto dead = EtcdProcess::Start();
  ASSERT_TRUE(dead.ok());
  (*dead)->Kill();
  ASSERT_TRUE(a.Join(ConnectEtcd({.endpoints = (*dead)->address() + "," + etcd->address()}).value())
                  .IsOk());
  ASSERT_TRUE(b.Join(Connect()).IsOk());
  EXPECT_TRUE(a.Sees({"10.0.0.1:1", "10.0.0.2:1"}));
  EXPECT_TRUE(a.Renews());
}

TEST(Membership, RefusesOptionsAndMembersThatMakeNoSense) {
  const auto store = CreateEmbeddedStore();
  const MembershipOptions good{.prefix = kPrefix};
  MembershipOptions no_slash = good, lazy = good;
  no_slash.prefix = "/workers";
  lazy.renew_interval = 60s;
  for (const MembershipOptions& options : {no_slash, lazy}) {
    EXPECT_EQ(Membership::Join(*store, Worker("10.0.0.1:1"), options, {}).status().GetCode(),
              K_INVALID);
  }
  EXPECT_EQ(Membership::Join(*store, Worker("10.0.0.1"), good, {}).status().GetCode(), K_INVALID);
}

TEST(Membership, RenewsAtAnotherIntervalFromTheMomentItIsSet) {
  TestWorker worker("10.0.0.1:1");
  ASSERT_TRUE(worker.Join(CreateEmbeddedStore()).IsOk());
  const TimePoint before = worker.valid_until();
  ASSERT_TRUE(worker.membership->SetRenewInterval(1500ms).IsOk());
  EXPECT_TRUE(Eventually(15s, [&] { return worker.valid_until() > before; }));
  ASSERT_TRUE(worker.membership->SetRenewInterval(50ms).IsOk());
  EXPECT_TRUE(worker.Renews());
  EXPECT_TRUE(worker.Renews());
  EXPECT_EQ(worker.membership->SetRenewInterval(0ms).GetCode(), K_INVALID);
  EXPECT_EQ(worker.membership->SetRenewInterval(1h).GetCode(), K_INVALID);
}

TEST(Membership, WorksOverTheEmbeddedStore) {
  TestWorker worker("10.0.0.1:1");
  ASSERT_TRUE(worker.Join(CreateEmbeddedStore({.history_max = 4})).IsOk());
  EXPECT_THAT(worker.addresses(), ElementsAre("10.0.0.1:1"));
  EXPECT_TRUE(worker.Renews());
  const CallLimits soon{.deadline = Clock::Steady().Now() + 5s};
  ASSERT_TRUE(worker.store->Delete(kPrefix + worker.self.address, soon).value());
  ASSERT_TRUE(worker.IsLost());
  ASSERT_TRUE(worker.Rejoin().IsOk());
  EXPECT_TRUE(worker.Renews());
  EXPECT_TRUE(worker.membership->Leave().IsOk());
  EXPECT_TRUE(worker.store->RangePrefix(kPrefix, 0, soon)->entries.empty());
}

}  // namespace
}  // namespace datasystem::cluster
