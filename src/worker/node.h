// The parts of one worker that serve objects, for those who work with several of them. All of them live
// on the event loop's thread and outlive everything that gets a Node.
#pragma once

#include "base/clock.h"
#include "base/event_loop.h"
#include "directory/directory.h"
#include "store/object_store.h"
#include "transport/transport.h"
#include "worker/cluster_view.h"
#include "worker/pending_keys.h"

namespace datasystem::worker {

struct Node {
  asio::io_context& context;
  const Clock& clock;
  ClusterView& view;
  store::ObjectStore& store;
  directory::Directory& directory;
  transport::Transport& transport;
  PendingKeys& pending;
};

// Time as it travels: milliseconds that remain, at least 1; 0 means "never" for expiry.
inline uint64_t RemainingMs(const Clock& clock, TimePoint until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock.Now()).count();
  return left < 1 ? 1 : static_cast<uint64_t>(left);
}
inline uint64_t TtlMs(const Clock& clock, TimePoint expires_at) {
  return expires_at == TimePoint::max() ? 0 : RemainingMs(clock, expires_at);
}
inline TimePoint ExpiryOf(const Clock& clock, uint64_t ttl_ms) {
  // About 30 years, far below the range of the clock: longer is for ever.
  constexpr uint64_t kForeverMs = 1'000'000'000'000;
  if (ttl_ms == 0 || ttl_ms > kForeverMs) return TimePoint::max();
  return clock.Now() + std::chrono::milliseconds(ttl_ms);
}

}  // namespace datasystem::worker
