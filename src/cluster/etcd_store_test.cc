// What is particular to etcd: endpoints, failures, failover.
#include "cluster/etcd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "base/unique_fd.h"
#include "cluster/etcd_process.h"
#include "cluster/eventually.h"

// Debian 12's c-ares loses ten bytes each time it resolves "localhost" for gRPC.
extern "C" [[gnu::visibility("default")]] const char* __lsan_default_suppressions() {
  return "leak:libcares";
}

namespace datasystem::cluster {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

CallLimits In(Duration time) { return {.deadline = Clock::Steady().Now() + time}; }

std::unique_ptr<EtcdProcess> StartEtcd() {
  auto etcd = EtcdProcess::Start();
  EXPECT_TRUE(etcd.ok()) << etcd.status().ToString();
  return etcd.ok() ? *std::move(etcd) : nullptr;
}

// A port of 127.0.0.1 that accepts connections and never answers, or refuses them.
class Port {
 public:
  enum Kind { kSilent, kRefusing };
  explicit Port(Kind kind) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    if (kind == kSilent) {
      EXPECT_EQ(::listen(fd_.get(), 16), 0);
    }
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  const std::string& address() const { return address_; }

 private:
  UniqueFd fd_;
  std::string address_;
};

TEST(EtcdEndpoints, NamesTheOneThatIsMalformed) {
  for (auto [list, bad, why] : {std::tuple{"", "''", "empty"},
                                {"127.0.0.1:2379,", "''", "empty"},
                                {"127.0.0.1:2379,10.0.0.1", "'10.0.0.1'", "no port"},
                                {"http://127.0.0.1:2379", "'http://127.0.0.1:2379'", "scheme"},
                                {"host:0", "'host:0'", "bad port"},
                                {"host:65536", "'host:65536'", "bad port"},
                                {"host:23x", "'host:23x'", "bad port"},
                                {"300.0.0.1:2379", "'300.0.0.1:2379'", "bad host"},
                                {"ho st:2379", "'ho st:2379'", "bad host"},
                                {"::1:2379", "'::1:2379'", "bad host"},
                                {"a/b:2379", "'a/b:2379'", "bad host"},
                                {":2379", "':2379'", "bad host"}}) {
    const Status status = ConnectEtcd({.endpoints = list}).status();
    EXPECT_EQ(status.GetCode(), K_INVALID) << list;
    EXPECT_THAT(status.GetMsg(), testing::AllOf(HasSubstr(bad), HasSubstr(why))) << list;
  }
  for (const char* list : {"127.0.0.1:2379", "[::1]:2379, etcd-0.etcd.svc:2379", "localhost:1"}) {
    EXPECT_TRUE(ConnectEtcd({.endpoints = list}).ok()) << list;
  }
}

TEST(EtcdStore, SaysWhyAnUnreachableEtcdCannotBeReached) {
  const Port refusing(Port::kRefusing);
  const auto store = ConnectEtcd({.endpoints = refusing.address()}).value();
  const TimePoint begin = Clock::Steady().Now();
  const Status status = store->Grant(60s, In(300ms)).status();
  EXPECT_LT(Clock::Steady().Now() - begin, 2s);
  EXPECT_EQ(status.GetCode(), K_KVSTORE_ERROR);
  EXPECT_EQ(status.GetMsg(),
            "cannot reach etcd at " + refusing.address() +
                " within 300 ms: connection refused; is it running, is etcd_address "
                "right?");
}

TEST(EtcdStore, NamesTheCauseOfEachEndpoint) {
  const Port refusing(Port::kRefusing), silent(Port::kSilent);
  const auto store =
      ConnectEtcd({.endpoints = refusing.address() + "," + silent.address()}).value();
  const std::string message = store->Grant(60s, In(300ms)).status().GetMsg();
  EXPECT_THAT(message, HasSubstr(refusing.address() + ": connection refused"));
  EXPECT_THAT(message, HasSubstr(silent.address() + ": no answer"));
}

TEST(EtcdStore, SaysThatANameIsNotKnown) {
  const auto store = ConnectEtcd({.endpoints = "no-such-host.invalid:2379"}).value();
  EXPECT_THAT(store->Grant(60s, In(3s)).status().GetMsg(),
              HasSubstr("no-such-host.invalid:2379 within 3000 ms: "));
}

TEST(EtcdStore, StopsACallThatWaitsForASilentEtcdAtOnce) {
  const Port silent(Port::kSilent);
  const auto store = ConnectEtcd({.endpoints = silent.address()}).value();
  std::stop_source stop;
  const TimePoint begin = Clock::Steady().Now();
  Status status;
  std::jthread caller([&] {
    status = store->Grant(60s, {.deadline = begin + 60s, .stop = stop.get_token()}).status();
  });
  stop.request_stop();
  caller.join();
  EXPECT_EQ(status.GetCode(), K_INTERRUPTED);
  EXPECT_LT(Clock::Steady().Now() - begin, 10s);
}

TEST(EtcdStore, UsesTheNextEndpointWhenOneRefusesOrKeepsSilent) {
  const auto etcd = StartEtcd();
  ASSERT_TRUE(etcd);
  for (const Port::Kind kind : {Port::kRefusing, Port::kSilent}) {
    const Port dead(kind);
    const auto store = ConnectEtcd({.endpoints = dead.address() + "," + etcd->address()}).value();
    EXPECT_TRUE(store->Put("/a", "1", kNoLease, In(4s)).ok());
    const TimePoint begin = Clock::Steady().Now();
    EXPECT_TRUE(store->Put("/a", "2", kNoLease, In(4s)).ok());
    EXPECT_LT(Clock::Steady().Now() - begin, 1s) << "asked the dead endpoint again";
  }
}

TEST(EtcdStore, AWatchFollowsToTheEndpointThatAnswers) {
  const auto etcd = StartEtcd();
  ASSERT_TRUE(etcd);
  const Port silent(Port::kSilent);
  const auto store = ConnectEtcd({.endpoints = silent.address() + "," + etcd->address()}).value();
  std::atomic<int> changes = 0;
  const auto watch = store->WatchPrefix(
      "/a", 1,
      {.on_changes = [&](const auto& seen) { changes += seen.size(); }, .on_compacted = [] {}});
  EXPECT_TRUE(store->Put("/a", "1", kNoLease, In(2s)).ok());
  EXPECT_TRUE(Eventually(10s, [&] { return changes == 1; }));
}

TEST(EtcdStore, AWatchGoesOnWithoutAGapWhenEtcdWasKilledAndRestarted) {
  const auto etcd = StartEtcd();
  ASSERT_TRUE(etcd);
  const auto store = ConnectEtcd({.endpoints = etcd->address()}).value();
  const auto other = ConnectEtcd({.endpoints = etcd->address()}).value();
  std::mutex mutex;
  std::vector<std::string> values;
  std::atomic<int> losses = 0, connections = 0;
  const auto watch = store->WatchPrefix(
      "/a", 1,
      {.on_changes =
           [&](const std::vector<StoreChange>& changes) {
             const std::lock_guard lock(mutex);
             for (const StoreChange& change : changes) values.push_back(change.entry.value);
           },
       .on_compacted = [] {},
       .on_connection = [&](const Status& status) { ++(status.IsOk() ? connections : losses); }});
  const auto seen = [&](size_t count) {
    return Eventually(10s, [&] {
      const std::lock_guard lock(mutex);
      return values.size() == count;
    });
  };
  ASSERT_TRUE(other->Put("/a", "1", kNoLease, In(5s)).ok());
  ASSERT_TRUE(seen(1));
  etcd->Kill();
  ASSERT_TRUE(Eventually(10s, [&] { return losses == 1; }));
  ASSERT_TRUE(etcd->Restart().IsOk());
  ASSERT_TRUE(other->Put("/a", "2", kNoLease, In(5s)).ok());
  ASSERT_TRUE(other->Put("/a", "3", kNoLease, In(5s)).ok());
  ASSERT_TRUE(seen(3));
  EXPECT_THAT(values, testing::ElementsAre("1", "2", "3"));
  EXPECT_EQ(losses, 1);
  EXPECT_EQ(connections, 2);
}

TEST(EtcdStore, TakesNoProxyFromTheEnvironment) {
  const auto etcd = StartEtcd();
  ASSERT_TRUE(etcd);
  const Port refusing(Port::kRefusing);
  ASSERT_EQ(::setenv("http_proxy", ("http://" + refusing.address()).c_str(), 1), 0);
  const auto store = ConnectEtcd({.endpoints = "localhost" + etcd->address().substr(9)}).value();
  EXPECT_TRUE(store->Put("/a", "", kNoLease, In(5s)).ok());
  ::unsetenv("http_proxy");
}

}  // namespace
}  // namespace datasystem::cluster
