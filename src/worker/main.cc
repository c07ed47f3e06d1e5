#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>

#include "base/log.h"
#include "config/flag_print.h"
#include "config/flags.h"
#include "worker/start_check.h"
#include "worker/version.h"
#include "worker/worker.h"

namespace datasystem::worker {
namespace {

// What dscli prints when a start fails is what the worker wrote here.
int Fail(const Status& status) {
  std::fprintf(stderr, "Worker runtime error: %s\n", status.ToString().c_str());
  LOG_ERROR("Worker runtime error:{}", status.ToString());
  FlushLogs();
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
  auto options = WorkerOptions::FromFlags(*flags);
  if (!options.ok()) return Fail(options.status());
  if (!flags->Get(config::kCheck).empty()) {
    const StartCheck check = CheckStart(*options);
    std::puts(check.json.c_str());
    return check.passed ? 0 : 255;
  }
  const Status logs = OpenLogs(options->log);
  if (logs.IsError()) return Fail(logs);
  ::signal(SIGPIPE, SIG_IGN);
  RaiseDescriptorLimit();

  LOG_INFO("starting version={} address={}", kVersion, options->worker_address.ToString());
  for (const std::string& flag : flags->NonDefault()) LOG_INFO("flag {}", flag);
  for (const std::string& note : flags->WithoutEffect()) LOG_WARNING("{}", note);
  if (options->etcd_address.empty()) {
    LOG_INFO("no etcd_address: a cluster of this one node, kept by the embedded store");
  }

  auto worker = Worker::Create(*options);
  if (!worker.ok()) return Fail(worker.status());
  const Status status = (*worker)->Run();
  if (status.IsError()) return Fail(status);
  worker->reset();
  LOG_INFO("stopped");
  FlushLogs();
  return 0;
}

}  // namespace
}  // namespace datasystem::worker

int main(int argc, char** argv) { return datasystem::worker::Main(argc, argv); }
