#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/check.h"
#include "base/log.h"
#include "config/flag_print.h"
#include "config/flags.h"
#include "worker/live_flags.h"
#include "worker/probe_files.h"
#include "worker/start_check.h"
#include "worker/version.h"
#include "worker/worker.h"

namespace datasystem::worker {
namespace {

// What dscli prints when a start fails is what the worker wrote here.
int Fail(const Status& status) {
  LeaveStderr();
  std::fprintf(stderr, "Worker runtime error: %s\n", status.ToString().c_str());
  LOG_ERROR("Worker runtime error:{}", status.ToString());
  return 255;
}

Status OpenLogs(const LogOptions& options) {
  if (!options.directory.empty()) {
    std::error_code error;
    std::filesystem::create_directories(options.directory, error);
    if (error) {
      return errors::IoError("cannot make log_dir {}: {}; choose a folder that this user can write",
                             options.directory, error.message());
    }
  }
  const std::string problem = StartLogging(options);
  if (!problem.empty()) return errors::IoError("cannot write logs to {}: {}", options.directory, problem);
  return Status::OK();
}

// Each client connection is a descriptor: take what the hard limit gives.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// What a change of live flags does. Returned: what LiveFlags itself is to do with old logs.
OldLogLimits TakeLive(const config::FlagValues& values, Worker& worker) {
  const auto options = WorkerOptions::FromFlags(values);
  CHECK(options.ok());  // live flags do not decide over that
  SetLogLevel(options->log.level);
  worker.SetRenewInterval(options->renew_interval);
  return options->old_logs;
}

// The container's scripts wait for this line in the file that they share with the worker, where they
// may have written what is to happen. See docs/probes.md.
class StatusFile {
 public:
  StatusFile() : path_(config::StatusFilePath()) {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  // The process may be killed from here on.
  ~StatusFile() {
    if (path_.empty()) return;
    const Status written = WriteProbeFile(path_, "worker_stop_status:ready\n");
    if (written.IsError()) LOG_ERROR("status file not written reason={}", written.GetMsg());
  }

 private:
  const std::string path_;
};

int Main(int argc, char** argv) {
  auto flags = config::FlagValues::Parse(argc, argv);
  if (!flags.ok()) {
    std::fprintf(stderr, "%s\n", flags.status().GetMsg().c_str());
    return 1;
  }
  if (const auto text = config::InformationAsked(*flags, kVersion, config::TerminalColumns())) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  config::LiveFile live_file(flags->Get(config::kMonitorConfigFile), *flags);
  std::optional<config::LiveFile::News> news;
  if (!flags->Get(config::kCheckFlags)) news = live_file.Look();
  auto options = WorkerOptions::FromFlags(news ? news->values : *flags);
  if (flags->Get(config::kCheckFlags)) {
    if (options.ok()) return 0;
    std::fprintf(stderr, "%s\n", options.status().GetMsg().c_str());
    return 1;
  }
  if (!options.ok()) return Fail(options.status());
  if (!flags->Get(config::kCheck).empty()) {
    const StartCheck check = CheckStart(*options);
    std::puts(check.json.c_str());
    return check.passed ? 0 : 255;
  }
  const Status logs = OpenLogs(options->log);
  if (logs.IsError()) return Fail(logs);
  const StatusFile status_file;
  ::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();

  LOG_INFO("starting version={} address={}", kVersion, options->worker_address.ToString());
  for (const std::string& flag : flags->NonDefault()) LOG_INFO("flag {}", flag);
  for (const std::string& note : flags->WithoutEffect()) LOG_WARNING("{}", note);
  if (news) LogNews(live_file, *news);
  if (options->etcd_address.empty()) {
    LOG_INFO("no etcd_address: a cluster of this one node, kept by the embedded store");
  }

  auto worker = Worker::Create(*options);
  if (!worker.ok()) return Fail(worker.status());
  Status status;
  {
    const LiveFlags live_flags(std::move(live_file), {LogPaths(options->log), options->old_logs},
                               [&](const config::FlagValues& values) { return TakeLive(values, **worker); });
    status = (*worker)->Run();
  }
  if (status.IsError()) return Fail(status);
  worker->reset();
  LOG_INFO("stopped");
  return 0;
}

}  // namespace
}  // namespace datasystem::worker

int main(int argc, char** argv) { return datasystem::worker::Main(argc, argv); }
