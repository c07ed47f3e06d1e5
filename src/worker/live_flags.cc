#include "worker/live_flags.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/log.h"

namespace datasystem::worker {
namespace {

constexpr auto kInterval = std::chrono::seconds(10);

}  // namespace

void LogNews(const config::LiveFile& file, const config::LiveFile::News& news) {
  for (const std::string& mistake : news.mistakes) LOG_ERROR("monitor_config_file {}", mistake);
  for (const std::string& change : news.changes) LOG_INFO("flag {} by {}", change, file.path());
}

LiveFlags::LiveFlags(config::LiveFile file, Logs logs, Take take)
    : file_(std::move(file)), logs_(std::move(logs)), take_(std::move(take)),
      thread_([this](std::stop_token stop) { Run(stop); }) {}

void LiveFlags::Run(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  while (!stopped.wait_for(lock, stop, kInterval, [&] { return stop.stop_requested(); })) {
    if (const auto news = file_.Look()) {
      LogNews(file_, *news);
      if (!news->changes.empty()) logs_.limits = take_(news->values);
    }
    Tidy();
  }
}

void LiveFlags::Tidy() {
  std::string problem;
  for (const std::string& path : logs_.paths) {
    if (std::string one = TidyOldLogs(path, logs_.limits); !one.empty()) problem = std::move(one);
  }
  if (!problem.empty() && tidy_) LOG_WARNING("old log files stay, tried again reason={}", problem);
  tidy_ = problem.empty();
}

}  // namespace datasystem::worker
