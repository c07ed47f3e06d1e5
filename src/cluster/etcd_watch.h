// One watch of a prefix in etcd: a thread that keeps a stream open, reopens it where it broke off,
// and follows when the connection moves on to another endpoint, which calls bring about: of several
// endpoints of which some are dead, a watch without calls beside it may wait for a dead one.
// Internal to this folder.
#pragma once

#include "cluster/etcd_connection.h"

namespace datasystem::cluster {

// The first key behind all that start with `prefix`; a zero byte, etcd's "no end", if there is
// none.
std::string EtcdRangeEnd(std::string_view prefix);

std::unique_ptr<Watch> WatchEtcd(EtcdConnection& connection, std::string prefix,
                                 uint64_t from_revision, WatchEvents events);

}  // namespace datasystem::cluster
