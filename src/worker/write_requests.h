// Answers the requests of clients that bring values in: Create, Set, Abandon.
//
// An error that these return ends the connection: only for what breaks the protocol or the stream. All
// else is told in the answer. Threads: the event loop's.
#pragma once

#include "worker/client_request.h"

namespace datasystem::worker {

class WriteRequests {
 public:
  explicit WriteRequests(const ClientRequestParts& parts);

  asio::awaitable<Status> Create(ClientRequest request);
  asio::awaitable<Status> Set(ClientRequest request);
  Status Abandon(const ClientRequest& request);

 private:
  // The value of one item on its way from the client to the store.
  struct Value {
    shm::Extent extent;
    uint64_t buffer_id = 0;  // whose memory it is; 0: it came in the payload
  };
  Status CheckBatch(const proto::SetRequest& request) const;
  Result<SetOptions> CheckParam(const proto::SetParam& param) const;
  asio::awaitable<Status> ReceiveValues(const ClientRequest& request, const proto::SetRequest& set,
                                        std::vector<Value>& values, std::vector<Status>& outcomes);
  Result<Value> TakeBuffer(ClientSession& session, const proto::SetItem& item);
  asio::awaitable<void> SetEach(proto::SetRequest& request, std::vector<Value>& values, SetOptions options,
                                TimePoint deadline, std::vector<Status>& outcomes);
  asio::awaitable<Status> SetAll(proto::SetRequest& request, std::vector<Value>& values, SetOptions options,
                                 TimePoint deadline, std::vector<Status>& outcomes);
  void GrantLease(ClientSession& session, uint64_t size, proto::SetReply& reply);

  const ClientRequestParts& parts_;
  const uint64_t memory_bytes_;
};

}  // namespace datasystem::worker
