// One worker: all layers built into one process.
//
// Create makes everything that can fail, before anything is announced; Run serves until Stop. The order of
// the members is the order in which they depend on each other.
#pragma once

#include <memory>

#include "base/result.h"
#include "worker/worker_options.h"

namespace datasystem::worker {

class Worker {
 public:
  // Errors name cause and remedy: address in use, not enough memory, lanes that cannot be had, cluster
  // store out of reach. Nothing is left behind.
  static Result<std::unique_ptr<Worker>> Create(const WorkerOptions& options);
  ~Worker();

  // Joins the cluster and serves, on this thread, until SIGTERM, SIGINT or Stop(); then leaves the cluster.
  // An error if it could not join, or may not be a member any more.
  Status Run();
  // Threads: any.
  void Stop();
  // Of the lease; for a flag that changed. Threads: any.
  void SetRenewInterval(std::chrono::milliseconds interval);

 private:
  struct Parts;
  explicit Worker(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace datasystem::worker
