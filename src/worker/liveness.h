// The file that says whether the event loop still works. See docs/probes.md.
//
// A thread asks the loop for a sign of life over and over and writes what came of it. A loop that is
// busy answers late, which is well; one that hangs does not, and after the timeout the file says so. A
// stopped process writes nothing: the file becomes old.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "base/event_loop.h"
#include "base/result.h"

namespace datasystem::worker {

// Threads: Prepare, Start and Stop one at a time.
class Liveness {
 public:
  struct Options {
    std::string path;  // empty: no file, and no thread
    std::chrono::milliseconds timeout;
    // Between two lines; at most a third of the timeout.
    std::chrono::milliseconds interval = std::chrono::seconds(5);
  };
  // `loop` must outlive it.
  Liveness(EventLoop& loop, Options options);
  ~Liveness() { Stop(); }

  // Removes the file of an earlier life and makes its folder. kIoError names the path.
  Status Prepare();
  void Start();
  // Removes the file. Callable twice.
  void Stop();

 private:
  void Run(std::stop_token stop);

  EventLoop& loop_;
  const Options options_;
  std::jthread thread_;
};

}  // namespace datasystem::worker
