// Every ten seconds: looks at monitor_config_file and passes on what it changes (config/live_file.h), and
// tidies the log files. A thread of its own, because a file system may keep it waiting.
#pragma once

#include <functional>
#include <thread>

#include "config/live_file.h"
#include "worker/old_logs.h"

namespace datasystem::worker {

// Mistakes to the log as errors, changes as they take effect. Both name the file.
void LogNews(const config::LiveFile& file, const config::LiveFile::News& news);

class LiveFlags {
 public:
  // Called on the thread, with the values that are in force from now on; returns what they say of logs.
  using Take = std::function<OldLogLimits(const config::FlagValues&)>;
  struct Logs {
    std::vector<std::string> paths;
    OldLogLimits limits;
  };
  LiveFlags(config::LiveFile file, Logs logs, Take take);

 private:
  void Run(std::stop_token stop);
  void Tidy();

  config::LiveFile file_;
  Logs logs_;
  bool tidy_ = true;  // so that a full disk is reported once
  Take take_;
  std::jthread thread_;
};

}  // namespace datasystem::worker
