// Publishes values: asks the directory shard for a version, then makes the value visible.
//
// A version that was granted in an epoch counts only in that epoch: if the ring changed before the
// answer came, the new shard does not know of it, and it must be asked for again. Threads: the
// event loop's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shm/extent.h"
#include "worker/holder.h"
#include "worker/node.h"

namespace datasystem::worker {

struct SetOptions {
  bool only_if_absent = false;
  bool evictable = false;
  uint64_t ttl_ms = 0;  // 0 = lives until deleted
};

class Writer {
 public:
  Writer(const Node& node, Holder& holder) : node_(node), holder_(holder) {}

  // See ObjectService.
  asio::awaitable<Status> Set(std::string key, shm::Extent& extent, SetOptions options,
                              TimePoint deadline);
  asio::awaitable<Status> SetAll(std::vector<std::string> keys, std::vector<shm::Extent>& extents,
                                 SetOptions options, TimePoint deadline);

 private:
  struct Part {
    std::string key;
    shm::Extent* extent = nullptr;
    std::unique_ptr<PendingKeys::Operation> operation;
    uint64_t version = 0;  // the latest that was granted
  };

  asio::awaitable<Result<uint64_t>> RequestVersion(std::string key, SetOptions options,
                                                   uint64_t discarded, TimePoint deadline);
  asio::awaitable<Status> RequestVersions(std::vector<Part>& parts, SetOptions options,
                                          TimePoint deadline);
  // Makes the granted value visible, unless the shard has ordered a change after it. After an error
  // (the index is full) the version must be taken back.
  Status Publish(const std::string& key, uint64_t version, const SetOptions& options,
                 const PendingKeys::Operation& operation, shm::Extent& extent);
  Status PublishAll(std::vector<Part>& parts, const SetOptions& options);
  // The shard forgets a version that was granted and is not going to be published.
  asio::awaitable<void> TakeBack(std::string key, uint64_t version, TimePoint deadline);
  asio::awaitable<Status> Withdraw(std::string key, uint64_t version, TimePoint deadline);
  asio::awaitable<void> TakeBackAll(std::vector<Part>& parts, TimePoint deadline);

  const Node& node_;
  Holder& holder_;
};

}  // namespace datasystem::worker
