// Answers the other workers: as a directory shard, and as a holder of copies.
// Threads: the event loop's.
#pragma once

#include "worker/holder.h"
#include "worker/many_values.h"
#include "worker/node.h"

namespace datasystem::worker {

class PeerService {
 public:
  PeerService(const Node& node, Holder& holder, ManyLimits limits = {})
      : node_(node), holder_(holder), limits_(limits) {}

  // Transport::RequestHandler. Every request is answered or handed on, malformed ones included.
  void Handle(transport::Request request);

 private:
  asio::awaitable<void> Serve(transport::Request request);
  asio::awaitable<Status> ServeGet(transport::ReturnAddress from, std::string body);
  asio::awaitable<Status> ServeFetch(transport::ReturnAddress from, std::string body);
  // Answers a `fetch`, whoever it came from first, from this worker's store.
  asio::awaitable<Status> SendObject(transport::ReturnAddress from, proto::PeerFetch fetch);
  asio::awaitable<Status> ServeUpdate(transport::ReturnAddress from, std::string body);
  asio::awaitable<Status> ServeExpire(transport::ReturnAddress from, std::string body);
  asio::awaitable<Status> ServeSetExpiry(transport::ReturnAddress from, std::string body);
  asio::awaitable<Status> ServeDelete(transport::ReturnAddress from, std::string body);
  asio::awaitable<Status> ServeExist(transport::ReturnAddress from, std::string body);
  asio::awaitable<Status> ServeDropped(transport::ReturnAddress from, std::string body);
  asio::awaitable<Status> ServeCollect(transport::ReturnAddress from, std::string body);
  asio::awaitable<Status> ServeEntries(transport::ReturnAddress from, std::string body);
  Status ServeGetMany(const transport::ReturnAddress& from, const std::string& body);
  Status ServeInvalidate(transport::ReturnAddress from, const std::string& body);
  Status ServePromote(transport::ReturnAddress from, const std::string& body);

  // A message may be acted on: this worker is a member, and in the same epoch as the sender.
  Status Admit(uint64_t epoch) const;

  const Node& node_;
  Holder& holder_;
  const ManyLimits limits_;
};

}  // namespace datasystem::worker
