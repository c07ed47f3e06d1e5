// The files by which others see how the worker is: health, ready, liveness (docs/flags.md).
// Threads: the event loop's.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <string>

#include "base/result.h"

namespace datasystem::worker {

class ProbeFiles {
 public:
  struct Paths {
    std::string health;    // exists while the worker is registered; each path may be empty: no such file
    std::string ready;     // exists while requests are answered
    std::string liveness;  // rewritten while the event loop runs
  };

  ProbeFiles(asio::io_context& context, Paths paths);
  // Removes what it made.
  ~ProbeFiles();

  // Removes files of an earlier life and makes the folders. kIoError names the path.
  Status Prepare();
  Status MarkHealthy();
  Status MarkReady();
  void ClearReady();
  void StartLiveness();
  // The worker is leaving.
  void Clear();

 private:
  void BeatLiveness();

  const Paths paths_;
  asio::steady_timer liveness_timer_;
};

}  // namespace datasystem::worker
