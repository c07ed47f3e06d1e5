// The cluster store of a single node: in this process, forgotten at exit. A lease ends when it is
// revoked and never by time: whoever would notice that its holder died has died with it.
#pragma once

#include "cluster/lease_store.h"

namespace datasystem::cluster {

struct EmbeddedStoreOptions {
  // Changes kept for watches and reads of older revisions.
  size_t history_max = 1000;
};

std::unique_ptr<LeaseStore> CreateEmbeddedStore(EmbeddedStoreOptions options = {});

}  // namespace datasystem::cluster
