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
  std::string json;  // one document; fields: docs/doctor.md
};

// Up to 20 s, when the network of an RDMA device loses the packets.
StartCheck CheckStart(const WorkerOptions& options);

}  // namespace datasystem::worker
