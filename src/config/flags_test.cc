#include "config/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/flag_print.h"
#include "config/flag_row.h"

namespace datasystem::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A command line in writable memory, as main() gets it.
class CommandLine {
 public:
  CommandLine(std::initializer_list<std::string> words) : words_(words) {
    words_.insert(words_.begin(), "datasystem_worker");
    for (std::string& word : words_) argv_.push_back(word.data());
  }
  Result<FlagValues> Parse() {
    return FlagValues::Parse(static_cast<int>(argv_.size()), argv_.data());
  }
  const std::string& word(size_t index) const { return words_[index]; }

 private:
  std::vector<std::string> words_;
  std::vector<char*> argv_;
};

Result<FlagValues> Parse(std::initializer_list<std::string> words) {
  return CommandLine(words).Parse();
}

std::string ErrorOf(std::initializer_list<std::string> words) {
  return Parse(words).status().GetMsg();
}

TEST(Flags, AreTakenInAllFourForms) {
  auto values = Parse({"--worker_address=127.0.0.2:1", "-etcd_address=[::1]:2379,etcd.svc:2379",
                       "--shared_memory_size_mb", "2048", "-v", "1"});
  ASSERT_TRUE(values.ok()) << values.status().GetMsg();
  EXPECT_EQ(values->Get(kWorkerAddress), "127.0.0.2:1");
  EXPECT_EQ(values->Get(kEtcdAddress), "[::1]:2379,etcd.svc:2379");
  EXPECT_EQ(values->Get(kSharedMemorySizeMb), 2048U);
  EXPECT_EQ(values->Get(kVerbosity), 1);
}

TEST(Flags, BoolsTakeEveryUsualWordAndMayStandAlone) {
  for (const char* word : {"true", "T", "Yes", "y", "1"}) {
    auto values = Parse({"--enable_rdma", word});
    ASSERT_TRUE(values.ok()) << word;
    EXPECT_TRUE(values->Get(kEnableRdma)) << word;
  }
  for (const char* word : {"false", "F", "NO", "n", "0"}) {
    auto values = Parse({std::string("--enable_data_replication=") + word});
    ASSERT_TRUE(values.ok()) << word;
    EXPECT_FALSE(values->Get(kEnableDataReplication)) << word;
  }
  EXPECT_TRUE(Parse({"--enable_rdma", "--v=1"})->Get(kEnableRdma));
  EXPECT_THAT(ErrorOf({"--enable_rdma=maybe"}), HasSubstr("--enable_rdma=maybe is no bool"));
}

TEST(Flags, TheLastOfTheSameNameCounts) {
  EXPECT_EQ(Parse({"--v=1", "--v=2"})->Get(kVerbosity), 2);
}

TEST(Flags, HaveTheDefaultsThatOperatorsKnow) {
  const FlagValues values;
  EXPECT_EQ(values.Get(kWorkerAddress), "127.0.0.1:31501");
  EXPECT_EQ(values.Get(kArenaPerTenant), 1U);
  EXPECT_EQ(values.Get(kNodeTimeoutS), 60U);
  EXPECT_FALSE(values.Get(kEnableRdma));
  EXPECT_TRUE(values.Get(kEnableDataReplication));
}

TEST(Flags, AnUnknownNameGetsTheNearestKnownOne) {
  EXPECT_THAT(ErrorOf({"--worker_adress=127.0.0.1:1"}),
              HasSubstr("unknown flag --worker_adress; did you mean --worker_address?"));
  EXPECT_THAT(ErrorOf({"--zzzzzzzzzzzz=1"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(ErrorOf({"--" + std::string(10000, 'x')}), HasSubstr("unknown flag"));
}

TEST(Flags, WhatIsOutOfRangeIsRefusedWithTheRange) {
  EXPECT_THAT(ErrorOf({"--node_timeout_s=4"}),
              HasSubstr("--node_timeout_s=4 is not allowed; allowed: at least 5"));
  EXPECT_THAT(ErrorOf({"--arena_per_tenant=33"}), HasSubstr("allowed: 1 to 32"));
  EXPECT_THAT(ErrorOf({"--shared_memory_size_mb=0"}), HasSubstr("--shared_memory_size_mb=0"));
  EXPECT_THAT(ErrorOf({"--shared_memory_size_mb=-1"}),
              HasSubstr("--shared_memory_size_mb=-1 is no uint64"));
  EXPECT_THAT(ErrorOf({"--shared_memory_size_mb=18446744073709551616"}),
              HasSubstr("does not fit a uint64"));
  EXPECT_THAT(ErrorOf({"--v=1x"}), HasSubstr("--v=1x is no int32; allowed: 0 to 3"));
  EXPECT_THAT(ErrorOf({"--v="}), HasSubstr("--v="));
  EXPECT_THAT(ErrorOf({"--eviction_high_watermark_ratio=nan"}), HasSubstr("is no double"));
  EXPECT_THAT(ErrorOf({"--rocksdb_write_mode=maybe"}), HasSubstr("allowed: none, sync, async"));
  EXPECT_THAT(ErrorOf({"--cluster_name=a/b"}), HasSubstr("letters and digits"));
}

TEST(Flags, AddressesAreCheckedBeforeAnythingStarts) {
  for (const char* bad : {"", "127.0.0.1", "localhost:1", "127.0.0.1:65536", "1.2.3:1"}) {
    EXPECT_THAT(ErrorOf({std::string("--worker_address=") + bad}),
                HasSubstr("IPv4:port or [IPv6]:port"))
        << bad;
  }
  for (const char* bad : {"etcd", "etcd:", "1.2.3:2379", "a:1,,b:2", "http://a:1", "a b:1"}) {
    EXPECT_THAT(ErrorOf({std::string("--etcd_address=") + bad}), HasSubstr("ip:port or name:port"))
        << bad;
  }
  EXPECT_TRUE(Parse({"--bind_address=0.0.0.0:31501"}).ok());
  EXPECT_FALSE(Parse({"--bind_address=0.0.0.0"}).ok());
}

TEST(Flags, AllMistakesAreReportedAtOnce) {
  const std::string error = ErrorOf({"--v=9", "stray", "--nosuch=1", "--node_timeout_s"});
  EXPECT_THAT(error, HasSubstr("--v=9"));
  EXPECT_THAT(error, HasSubstr("unexpected argument 'stray'"));
  EXPECT_THAT(error, HasSubstr("unknown flag --nosuch"));
  EXPECT_THAT(error, HasSubstr("--node_timeout_s has no value"));
}

TEST(Flags, RulesBetweenFlagsHold) {
  EXPECT_THAT(ErrorOf({"--node_timeout_s=300"}),
              HasSubstr("--node_dead_timeout_s=300 must be above"));
  EXPECT_THAT(ErrorOf({"--node_timeout_s=5", "--heartbeat_interval_ms=5000"}),
              HasSubstr("--heartbeat_interval_ms=5000 must be below --node_timeout_s=5"));
  EXPECT_THAT(ErrorOf({"--shared_memory_populate", "--arena_per_tenant=2"}),
              HasSubstr("--arena_per_tenant=1"));
  EXPECT_THAT(ErrorOf({"--shared_memory_populate"}), HasSubstr("--enable_fallocate=false"));
  EXPECT_TRUE(Parse({"--shared_memory_populate", "--enable_fallocate=false"}).ok());
  EXPECT_THAT(ErrorOf({"--enable_huge_tlb", "--enable_thp"}), HasSubstr("exclude each other"));
  EXPECT_THAT(ErrorOf({"--eviction_high_watermark_ratio=0.8"}),
              HasSubstr("--eviction_low_watermark_ratio=0.8 must be below --eviction_high_watermark_ratio=0.8"));
  EXPECT_TRUE(Parse({"--eviction_high_watermark_ratio=1", "--eviction_low_watermark_ratio=0"}).ok());
  EXPECT_THAT(ErrorOf({"--unix_domain_socket_dir=/" + std::string(80, 'd')}),
              HasSubstr("at most 80 characters"));
}

TEST(Flags, WhatWouldPromiseTooMuchIsRefused) {
  EXPECT_THAT(ErrorOf({"--enable_curve_zmq=true"}),
              HasSubstr("--enable_curve_zmq=true is not supported"));
  EXPECT_THAT(ErrorOf({"--l2_cache_type=sfs"}), HasSubstr("not supported"));
  EXPECT_TRUE(Parse({"--enable_curve_zmq=false", "--l2_cache_type=none"}).ok());
}

TEST(Flags, WhatHasNoEffectIsTakenAndReported) {
  auto values = Parse({"--rpc_thread_num=64", "--spill_directory=/data"});
  ASSERT_TRUE(values.ok()) << values.status().GetMsg();
  EXPECT_THAT(values->WithoutEffect(),
              ElementsAre(HasSubstr("--rpc_thread_num=64 is accepted and has no effect: "),
                          HasSubstr("--spill_directory=/data is accepted and has no effect: ")));
}

TEST(Flags, TheValuesThatDscliAlwaysPassesAreNotReported) {
  auto values = Parse({"--log_async=true", "--client_reconnect_wait_s=5",
                       "--rocksdb_store_dir=/home/me/datasystem/rocksdb", "--rpc_thread_num=16"});
  ASSERT_TRUE(values.ok()) << values.status().GetMsg();
  EXPECT_THAT(values->WithoutEffect(), IsEmpty());
}

TEST(Flags, SecretsAreBlankedInArgvAndNeverShown) {
  CommandLine line({"--obs_secret_key=hunter2", "--yuanrong_iam_passphrase", "hunter3"});
  auto values = line.Parse();
  ASSERT_TRUE(values.ok()) << values.status().GetMsg();
  EXPECT_THAT(line.word(1), Not(HasSubstr("hunter2")));
  EXPECT_THAT(line.word(3), Not(HasSubstr("hunter3")));
  EXPECT_THAT(values->NonDefault(),
              ElementsAre("obs_secret_key=xxx", "yuanrong_iam_passphrase=xxx"));
}

TEST(Flags, SecretsAreBlankedEvenWhenTheCommandLineIsWrong) {
  CommandLine line({"--tenant_secret_key=hunter2", "--v=9"});
  const std::string error = line.Parse().status().GetMsg();
  EXPECT_THAT(error, Not(HasSubstr("hunter2")));
  EXPECT_THAT(line.word(1), Not(HasSubstr("hunter2")));
}

TEST(Flags, TheHomeFolderIsFilledIn) {
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(Parse({})->Get(kLogDir), "/home/someone/datasystem/logs");
}

TEST(Flags, EnvironmentVariablesGiveDefaults) {
  ::setenv("GOOGLE_LOGTOSTDERR", "1", 1);
  EXPECT_TRUE(Parse({})->Get(kLogToStderr));
  EXPECT_FALSE(Parse({"--logtostderr=false"})->Get(kLogToStderr));
  ::setenv("GOOGLE_LOGTOSTDERR", "perhaps", 1);
  EXPECT_THAT(ErrorOf({}), HasSubstr("environment variable GOOGLE_LOGTOSTDERR"));
  ::unsetenv("GOOGLE_LOGTOSTDERR");
}

TEST(Table, EveryDefaultIsAllowedAndEveryRowIsExplained) {
  for (const FlagRow& row : Table()) {
    EXPECT_TRUE(row.rule.Allows(ToValue(row.binary_default))) << row.name;
    EXPECT_TRUE(row.rule.Allows(ToValue(row.dscli_default))) << row.name;
    EXPECT_FALSE(row.description.empty()) << row.name;
    EXPECT_EQ(FindRow(row.name), &row) << row.name << " is declared twice";
  }
}

TEST(Information, HelpComesEvenWhenOtherFlagsAreWrongAndKeepsToTheWidth) {
  auto values = Parse({"--v=9", "--help"});
  ASSERT_TRUE(values.ok());
  std::istringstream help(*InformationAsked(*values, "1.2.3", 60));
  for (std::string line; std::getline(help, line);) {
    const bool may_be_long = line.starts_with("  --") || line.find(":  ") != std::string::npos ||
                             line.find("dscli start") != std::string::npos;
    EXPECT_TRUE(line.size() <= 60 || may_be_long) << line;
  }
}

TEST(Information, JsonHasEverySettingWithTheDefaultsOfDscli) {
  const std::string json = *InformationAsked(*Parse({"--print_flags=json"}), "1.2.3", 80);
  EXPECT_THAT(json,
              HasSubstr("\"unix_domain_socket_dir\": {\n    \"value\": \"./datasystem/uds\""));
  EXPECT_THAT(json, HasSubstr("\"enable_stream_data_verification\""));
  EXPECT_THAT(json, Not(HasSubstr("\"help\"")));
}

TEST(Information, TheTableTellsProgramsAllThatARowSays) {
  const auto table = nlohmann::json::parse(*InformationAsked(*Parse({"--print_flags=table"}), "1.2.3", 80));
  std::map<std::string, nlohmann::json> rows;
  for (const auto& row : table) rows[row["name"]] = row;
  EXPECT_EQ(rows.size(), table.size());
  EXPECT_EQ(rows["node_timeout_s"]["default"], 60);
  EXPECT_EQ(rows["node_timeout_s"]["minimum"], 5);
  EXPECT_FALSE(rows["node_timeout_s"].contains("maximum"));
  EXPECT_EQ(rows["node_timeout_s"]["effect"], "used");
  EXPECT_EQ(rows["client_reconnect_wait_s"]["default"], 10);
  EXPECT_EQ(rows["client_reconnect_wait_s"]["dscli_default"], 5);
  EXPECT_EQ(rows["client_reconnect_wait_s"]["effect"], "accepted");
  EXPECT_NE(rows["client_reconnect_wait_s"]["reason"], "");
  EXPECT_EQ(rows["l2_cache_type"]["choices"], nlohmann::json({"none", "obs", "sfs", "distributed_disk"}));
  EXPECT_EQ(rows["l2_cache_type"]["effect"], "refused");
  EXPECT_EQ(rows["tenant_secret_key"]["secret"], true);
  EXPECT_EQ(rows["v"]["live"], true);
  EXPECT_FALSE(rows.contains("help"));
  EXPECT_FALSE(rows.contains("check_flags"));
}

TEST(Flags, ACheckGivesOneLineForEachMistakeAndNothingElse) {
  EXPECT_TRUE(Parse({"--check_flags", "--v=1"}).ok());
  const std::string error = ErrorOf({"--check_flags", "--v=9", "--nosuch=1", "--node_timeout_s=300"});
  EXPECT_THAT(error, Not(HasSubstr("--help")));
  EXPECT_EQ(std::ranges::count(error, '\n'), 2) << error;
}

TEST(Information, ValuesAreThoseInForceWithoutSecrets) {
  const std::string text = *InformationAsked(
      *Parse({"--print_flags=values", "--v=2", "--obs_access_key=hunter2"}), "1.2.3", 80);
  EXPECT_THAT(text, HasSubstr("\nv=2\n"));
  EXPECT_THAT(text, HasSubstr("obs_access_key=xxx\n"));
  EXPECT_FALSE(Parse({"--print_flags=values", "--v=9"}).ok());
}

TEST(Information, TheCheckedInDocumentIsThePrintedOne) {
  std::ifstream file(DS_SOURCE_DIR "/docs/flags.md");
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_EQ(content.str(), *InformationAsked(*Parse({"--print_flags=markdown"}), "1.2.3", 80))
      << "print it anew: datasystem_worker --print_flags=markdown > docs/flags.md";
}

TEST(Information, NothingIsPrintedWhenTheWorkerIsToStart) {
  EXPECT_EQ(InformationAsked(*Parse({}), "1.2.3", 80), std::nullopt);
  EXPECT_EQ(InformationAsked(*Parse({"--version"}), "1.2.3", 80), "datasystem_worker 1.2.3\n");
}

}  // namespace
}  // namespace datasystem::config
