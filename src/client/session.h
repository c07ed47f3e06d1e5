// A client's session with its worker: connections that share pins and unpublished buffers, and the
// worker's cache memory mapped into this process where both are on one node.
//
// It opens over TCP; when the worker names a Unix socket that can be reached, and the same worker
// answers there, the session is made over that socket, and the TCP connection ends.
//
// The worker ends the session, with its pins, when the first connection closes. No request goes
// over it: a client that is killed loses its session at once, even in the middle of a long get on
// another connection.
//
// Ownership: shared by the client, calls under way, and every claim and pin (claim.h), so that
//            memory that is still looked at stays pinned after the client is gone.
//
// Threads: any. Each call takes a connection of its own.
//
// Fork: in a child process nothing is sent, no lock taken and no pin released; only descriptors are
//       closed.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/connection.h"
#include "client/lease_book.h"
#include "client/process.h"
#include "shm/index_reader.h"
#include "shm/mapped_segment.h"

namespace datasystem::client {

class Session {
 public:
  static constexpr size_t kConnectionsMax = 128;  // for requests

  // Errors as Connection's and ShakeHands'.
  static Result<std::shared_ptr<Session>> Open(const SocketAddress& worker,
                                               const Deadline& deadline);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // A connection for one exchange, given back on destruction.
  class Lease {
   public:
    Lease(Session* session, std::unique_ptr<Connection> connection)
        : session_(session), connection_(std::move(connection)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (connection_ != nullptr) session_->Return(std::move(connection_));
    }
    Connection* operator->() const { return connection_.get(); }
    Connection& operator*() const { return *connection_; }

   private:
    Session* session_;
    std::unique_ptr<Connection> connection_;
  };
  // An idle one, or a new one, or waits for one. Errors as Open.
  Result<Lease> Acquire(const Deadline& deadline);

  // False once the worker has ended the session, or a millisecond later: a system call is made no more often.
  bool Alive() const;
  const std::string& worker() const { return lifeline_->worker(); }
  bool OfThisProcess() const { return ThisProcess() == process_id_; }

  // Null: the worker has given none.
  shm::IndexReader* index() const { return index_.get(); }
  LeaseBook& leases() { return leases_; }

  bool has_shared_memory() const { return !segments_.empty(); }
  // Whether a value of this size travels inside messages.
  bool IsInline(uint64_t size) const {
    return !has_shared_memory() || size < inline_threshold_bytes_;
  }
  // Before bytes in shared memory are used: see MappedSegment::Touch().
  void Touch(std::span<const std::byte> bytes) const;
  // The bytes of a place that the worker named, ready for use. kOutOfRange if there is no such place.
  Result<std::span<std::byte>> Resolve(const proto::Location& location) const;

  // Tells the worker that a pin is released (kRelease) or a buffer abandoned (kAbandon). Never
  // fails: it is sent at once when a connection is idle, else by the next call that ends.
  void GiveUp(proto::SessionMessage kind, uint64_t id);

 private:
  struct Segment {
    uint32_t id;
    shm::MappedSegment memory;
  };
  struct Claims {
    std::vector<uint64_t> pin_ids;
    std::vector<uint64_t> buffer_ids;
    bool empty() const { return pin_ids.empty() && buffer_ids.empty(); }
  };

  Session(const SocketAddress& worker, std::unique_ptr<Connection> lifeline,
          const proto::HelloReply& greeting);
  // Over the Unix socket that the greeting `tcp` told of. Null: it is another worker's.
  static Result<std::shared_ptr<Session>> OpenShared(const SocketAddress& worker,
                                                     const proto::HelloReply& tcp,
                                                     std::unique_ptr<Connection> connection,
                                                     const Deadline& deadline);
  Status MapSegments(const proto::HelloReply& greeting, const std::vector<UniqueFd>& fds);
  Result<std::unique_ptr<Connection>> Join(const Deadline& deadline) const;
  std::unique_ptr<Connection> TakeIdle();
  void Return(std::unique_ptr<Connection> connection);
  static Status SendGivenUp(Connection& connection, const Claims& claims);

  const pid_t process_id_;
  const SocketAddress worker_address_;
  const std::string socket_path_;  // empty: TCP
  const uint64_t id_;
  const uint64_t token_;
  const uint64_t inline_threshold_bytes_;
  const std::unique_ptr<Connection> lifeline_;
  mutable std::atomic<TimePoint> seen_alive_ = TimePoint::min();
  std::vector<Segment> segments_;  // of values
  std::unique_ptr<shm::IndexReader> index_;
  LeaseBook leases_;

  std::mutex mutex_;
  std::condition_variable returned_;
  // All below: under mutex_.
  std::vector<std::unique_ptr<Connection>> idle_;
  size_t open_ = 0;  // idle and leased
  Claims given_up_;  // not yet told to the worker
};

// One request and its answer over a connection of the session; an answer with an error is that
// error.
template <typename Reply>
Result<Reply> Call(Session& session, proto::SessionMessage request, std::string_view body,
                   Connection::Payload payload, proto::SessionMessage answer,
                   const Deadline& deadline) {
  ASSIGN_OR_RETURN(const Session::Lease connection, session.Acquire(deadline));
  RETURN_IF_ERROR(connection->Send(request, body, payload, deadline));
  ASSIGN_OR_RETURN(const Connection::Reply received, connection->Receive(answer, deadline));
  if (received.payload_size != 0) return connection->ProtocolError("an unexpected payload");
  auto reply = Reply::Decode(received.body);
  if (!reply.ok()) return connection->ProtocolError(reply.status().GetMsg());
  RETURN_IF_ERROR(reply->status);
  return reply;
}

}  // namespace datasystem::client
