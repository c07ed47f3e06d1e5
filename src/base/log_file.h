// A log file that is rolled over when it is full. For log.cc.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <mutex>
#include <string>

#include "base/unique_fd.h"

namespace datasystem {

// Writes each line at once, to <path>.log; a full file becomes <path>.<time>.log and a new one begins.
// A line that cannot be written (the disk is full) is lost; nothing else happens.
class LogFile final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  struct Options {
    std::string path;  // without .log
    uint64_t bytes_max = 0;
    unsigned mode = 0640;
  };
  // spdlog_ex if it cannot be opened, as spdlog's own sinks.
  explicit LogFile(Options options);

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  void Open();
  void Roll();

  const Options options_;
  UniqueFd fd_;
  uint64_t size_ = 0;
};

}  // namespace datasystem
