// A get whose answer is waited for by somebody else: by an event loop, which watches a descriptor.
//
// For the Python binding. One object is one call; it holds a connection of the session until it is
// finished or dropped.
// Threads: one at a time. The client outlives Start().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "datasystem/kv_client.h"

namespace datasystem::client {

class PendingGet {
 public:
  // Asks for what is not on this node. K_INVALID: more keys than one message holds (kBatchMax).
  // Errors else as KVClient::Get.
  static Status Start(KVClient& client, std::vector<std::string> keys, int32_t sub_timeout_ms,
                      std::unique_ptr<PendingGet>& pending);
  ~PendingGet();

  // Readable when Finish() has something to do; -1: it has already.
  int fd() const;
  // Milliseconds until the call's time-out, when Finish() has an error to tell.
  int64_t remaining_ms() const;
  // One of them, once. As KVClient::Get.
  Status Finish(std::vector<Optional<ReadOnlyBuffer>>& buffers);
  Status Finish(std::vector<Optional<Buffer>>& buffers);

 private:
  struct State;
  explicit PendingGet(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace datasystem::client
