// Answers the requests of clients about objects that exist: Get, Release, Delete, Exist, Expire, Sizes.
//
// Errors are as in write_requests.h. Threads: the event loop's.
#pragma once

#include "worker/client_request.h"

namespace datasystem::worker {

class ReadRequests {
 public:
  explicit ReadRequests(const ClientRequestParts& parts) : parts_(parts) {}

  asio::awaitable<Status> Get(ClientRequest request);
  Status Release(const ClientRequest& request);
  asio::awaitable<Status> Delete(ClientRequest request);
  asio::awaitable<Status> Exist(ClientRequest request);
  asio::awaitable<Status> Expire(ClientRequest request);
  asio::awaitable<Status> Sizes(ClientRequest request);

 private:
  // One outcome a key; null for those that failed.
  asio::awaitable<void> Find(proto::GetRequest& get, std::vector<store::ObjectRef>& objects,
                             proto::GetReply& reply);

  const ClientRequestParts& parts_;
};

}  // namespace datasystem::worker
