// For tests: a real etcd of one member, as a child process on free ports of 127.0.0.1 with its data
// in a temporary folder, both gone when it is destroyed (or when the thread that started it dies).
//
// It does not sync to disk and elects within 0.2 s, so that leases may be as short as 1 s.
// Threads: none.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace datasystem::cluster {

class EtcdProcess {
 public:
  // Started and answering. kRuntimeError carries the end of etcd's own output.
  static Result<std::unique_ptr<EtcdProcess>> Start();
  ~EtcdProcess();

  // "127.0.0.1:2379": what etcd_address wants.
  const std::string& address() const { return address_; }

  void Kill();       // SIGKILL
  Status Restart();  // on the same data, at the address where it was first
  // On the same data, but at another address: alive, yet cut off from all who know the first.
  Status RestartElsewhere();
  void Pause();  // SIGSTOP
  void Resume();

  // Runs `etcdctl <arguments>` against it; what it printed.
  Result<std::string> Ctl(const std::vector<std::string>& arguments) const;

 private:
  EtcdProcess() = default;
  Status Launch();
  Status AwaitAnswer();

  std::string folder_;
  std::string first_address_;
  std::string address_;
  std::string peer_address_;
  pid_t pid_ = -1;
};

}  // namespace datasystem::cluster
