// What would refuse a start, found out without starting: `datasystem_worker --check=json`, which
// `dscli doctor` asks.
//
// It runs the steps of a start that can fail for reasons of the machine, so the words are the same,
// and takes all of it back: the port is bound for a moment, huge pages are reserved for a moment,
// UCX connects to itself.
#pragma once

#include <string>

#include "worker/worker_options.h"

namespace datasystem::worker {

struct StartCheck {
  bool passed = false;
  // One document:
  //   version    of the worker
  //   checks     the steps in order, each with its name ("address", "etcd", "transport", "memory")
  //   and
  //              its error, which is empty if it worked
  //   members    addresses of the workers registered in etcd; missing if that cannot be read
  //   transport  ucx_version, ucx_libraries (files), devices (transport, device, rdma), device
  //   (that
  //              would carry the traffic), rdma (whether by RDMA)
  std::string json;
};

// Up to 20 s, when the network of an RDMA device loses the packets.
StartCheck CheckStart(const WorkerOptions& options);

}  // namespace datasystem::worker
