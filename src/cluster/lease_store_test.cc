// The contract of LeaseStore, the same for the embedded store and a real etcd.
#include "cluster/lease_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/embedded_store.h"
#include "cluster/etcd_process.h"
#include "cluster/etcd_store.h"
#include "cluster/eventually.h"

namespace datasystem::cluster {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

CallLimits Soon() { return {.deadline = Clock::Steady().Now() + 5s}; }

// A store and, where it needs one, the process behind it.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual LeaseStore& store() = 0;
  // Forgets all revisions before `revision`.
  virtual void Compact(uint64_t revision) = 0;
};

class EmbeddedBackend final : public Backend {
 public:
  LeaseStore& store() override { return *store_; }
  void Compact(uint64_t) override {
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(store_->Put("filler", "x", kNoLease, Soon()).ok());
  }

 private:
  std::unique_ptr<LeaseStore> store_ = CreateEmbeddedStore({.history_max = 10});
};

class EtcdBackend final : public Backend {
 public:
  EtcdBackend() {
    auto etcd = EtcdProcess::Start();
    if (!etcd.ok()) throw std::runtime_error(etcd.status().ToString());
    etcd_ = *std::move(etcd);
    store_ = ConnectEtcd({.endpoints = etcd_->address()}).value();
  }
  LeaseStore& store() override { return *store_; }
  void Compact(uint64_t revision) override {
    ASSERT_TRUE(etcd_->Ctl({"compact", std::to_string(revision)}).ok());
  }

 private:
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<LeaseStore> store_;
};

// What a watch reported.
class Recorder {
 public:
  WatchEvents Events() {
    return {.on_changes =
                [this](const std::vector<StoreChange>& changes) {
                  const std::lock_guard lock(mutex_);
                  for (const StoreChange& change : changes) {
                    texts_.push_back((change.deleted ? "-" : "+") + change.entry.key +
                                     change.entry.value);
                    revisions_.push_back(change.entry.mod_revision);
                  }
                },
            .on_compacted =
                [this] {
                  const std::lock_guard lock(mutex_);
                  compacted_ = true;
                }};
  }
  std::vector<std::string> Await(size_t count) {
    Eventually(5s, [&] {
      const std::lock_guard lock(mutex_);
      return texts_.size() >= count;
    });
    const std::lock_guard lock(mutex_);
    return texts_;
  }
  bool compacted() {
    const std::lock_guard lock(mutex_);
    return compacted_;
  }
  std::vector<uint64_t> revisions() {
    const std::lock_guard lock(mutex_);
    return revisions_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
  std::vector<uint64_t> revisions_;
  bool compacted_ = false;
};

class LeaseStoreContract : public testing::TestWithParam<std::string> {
 protected:
  uint64_t Put(std::string_view key, std::string_view value, LeaseId lease = kNoLease) {
    auto revision = store().Put(key, value, lease, Soon());
    EXPECT_TRUE(revision.ok()) << revision.status().ToString();
    return revision.ok() ? *revision : 0;
  }
  std::vector<std::string> Keys(std::string_view prefix, uint64_t revision = 0) {
    std::vector<std::string> keys;
    auto snapshot = store().RangePrefix(prefix, revision, Soon());
    EXPECT_TRUE(snapshot.ok()) << snapshot.status().ToString();
    if (!snapshot.ok()) return keys;
    for (const StoreEntry& entry : snapshot->entries) keys.push_back(entry.key + "=" + entry.value);
    return keys;
  }
  LeaseId Grant() { return store().Grant(60s, Soon()).value().id; }
  LeaseStore& store() { return backend_->store(); }

  std::unique_ptr<Backend> backend_ =
      GetParam() == "etcd" ? std::unique_ptr<Backend>(std::make_unique<EtcdBackend>())
                           : std::make_unique<EmbeddedBackend>();
};

TEST_P(LeaseStoreContract, ReadsAPrefixNowAndAsItWas) {
  const uint64_t first = Put("/a/1", "x");
  const uint64_t second = Put("/a/2", "y");
  Put("/b/1", "other");
  Put("/a0", "just behind the prefix");
  EXPECT_GT(second, first);
  ASSERT_TRUE(store().Delete("/a/1", Soon()).value());
  EXPECT_FALSE(store().Delete("/a/1", Soon()).value());
  EXPECT_THAT(Keys("/a/"), ElementsAre("/a/2=y"));
  EXPECT_THAT(Keys("/a/", second), ElementsAre("/a/1=x", "/a/2=y"));
  EXPECT_THAT(Keys("/a/", first), ElementsAre("/a/1=x"));
  const StoreSnapshot at_second = store().RangePrefix("/a/", second, Soon()).value();
  EXPECT_EQ(at_second.revision, second);
  EXPECT_EQ(at_second.entries[0].mod_revision, first);
  EXPECT_EQ(store().RangePrefix("/a/", second + 1000, Soon()).status().GetCode(), K_OUT_OF_RANGE);
}

TEST_P(LeaseStoreContract, ARevokedLeaseTakesItsKeysWithItInOneRevision) {
  const LeaseId lease = Grant(), other = Grant();
  Put("/a/1", "", lease);
  Put("/a/2", "", lease);
  Put("/a/moved", "", lease);
  const uint64_t last = Put("/a/moved", "", other);
  EXPECT_EQ(store().KeepAlive(lease, Soon()).value(), 60s);
  Recorder recorder;
  const auto watch = store().WatchPrefix("/a/", last + 1, recorder.Events());
  ASSERT_TRUE(store().Revoke(lease, Soon()).IsOk());
  EXPECT_THAT(Keys("/a/"), ElementsAre("/a/moved="));
  EXPECT_THAT(recorder.Await(2), testing::UnorderedElementsAre("-/a/1", "-/a/2"));
  EXPECT_THAT(recorder.revisions(), ElementsAre(last + 1, last + 1));
}

TEST_P(LeaseStoreContract, SaysThatALeaseIsGone) {
  const LeaseId lease = Grant();
  ASSERT_TRUE(store().Revoke(lease, Soon()).IsOk());
  EXPECT_EQ(store().Revoke(lease, Soon()).GetCode(), K_NOT_FOUND);
  EXPECT_EQ(store().KeepAlive(lease, Soon()).status().GetCode(), K_NOT_FOUND);
  EXPECT_EQ(store().Put("/a/1", "", lease, Soon()).status().GetCode(), K_NOT_FOUND);
  EXPECT_EQ(store().CreateIfAbsent("/a/1", "", lease, Soon()).status().GetCode(), K_NOT_FOUND);
  EXPECT_THAT(Keys("/a/"), testing::IsEmpty());
}

TEST_P(LeaseStoreContract, CreatesOnlyWhatIsAbsent) {
  const StoreCreation first = store().CreateIfAbsent("/a/1", "mine", kNoLease, Soon()).value();
  EXPECT_TRUE(first.created);
  const StoreCreation second = store().CreateIfAbsent("/a/1", "yours", kNoLease, Soon()).value();
  EXPECT_FALSE(second.created);
  EXPECT_EQ(second.entry.value, "mine");
  EXPECT_EQ(second.entry.mod_revision, first.entry.mod_revision);
}

TEST_P(LeaseStoreContract, AWatchReportsEveryChangeFromItsRevisionOnInOrder) {
  const uint64_t first = Put("/a/1", "old");
  Put("/a/1", "new");
  Put("/b/1", "other");
  Recorder recorder;
  const auto watch = store().WatchPrefix("/a/", first, recorder.Events());
  EXPECT_THAT(recorder.Await(2), ElementsAre("+/a/1old", "+/a/1new"));
  Put("/a/2", "");
  ASSERT_TRUE(store().Delete("/a/1", Soon()).value());
  EXPECT_THAT(recorder.Await(4), ElementsAre("+/a/1old", "+/a/1new", "+/a/2", "-/a/1"));
  EXPECT_THAT(recorder.revisions(), ElementsAre(first, first + 1, first + 3, first + 4));
}

TEST_P(LeaseStoreContract, AnEndedWatchReportsNothingMore) {
  const uint64_t revision = Put("/a/1", "");
  Recorder ended, running;
  auto watch = store().WatchPrefix("/a/", revision, ended.Events());
  const auto other_watch = store().WatchPrefix("/a/", revision, running.Events());
  EXPECT_EQ(ended.Await(1).size(), 1);
  watch.reset();
  Put("/a/2", "");
  EXPECT_EQ(running.Await(2).size(), 2);
  EXPECT_EQ(ended.Await(1).size(), 1);
}

TEST_P(LeaseStoreContract, SaysThatARevisionIsNoLongerKept) {
  const uint64_t first = Put("/a/1", "");
  const uint64_t last = Put("/a/1", "");
  backend_->Compact(last);
  EXPECT_EQ(store().RangePrefix("/a/", first, Soon()).status().GetCode(), K_OUT_OF_RANGE);
  Recorder recorder;
  const auto watch = store().WatchPrefix("/a/", first, recorder.Events());
  EXPECT_TRUE(Eventually(5s, [&] { return recorder.compacted(); }));
  EXPECT_TRUE(recorder.Await(0).empty());
  EXPECT_THAT(Keys("/a/"), ElementsAre("/a/1="));
}

TEST_P(LeaseStoreContract, RefusesCallsOnceStopped) {
  std::stop_source stop;
  stop.request_stop();
  const CallLimits stopped{.deadline = Clock::Steady().Now() + 5s, .stop = stop.get_token()};
  EXPECT_EQ(store().Grant(60s, stopped).status().GetCode(), K_INTERRUPTED);
  EXPECT_EQ(store().Put("/a/1", "", kNoLease, stopped).status().GetCode(), K_INTERRUPTED);
}

INSTANTIATE_TEST_SUITE_P(Stores, LeaseStoreContract, testing::Values("embedded", "etcd"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace datasystem::cluster
