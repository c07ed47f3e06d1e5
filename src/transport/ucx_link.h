// The connection to one peer: one UCX endpoint at a time, its outstanding sends and the queue behind them.
//
// UCX's callbacks only take notes; the owner acts on them after progress, in Service().
// Ownership: shared between the transport's table and UCX's callbacks that have not come yet.
// Threads: the event loop's.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "transport/carrier.h"

namespace datasystem::transport {

class UcxLink : public std::enable_shared_from_this<UcxLink> {
 public:
  // Beyond these, messages wait in the queue: UCX copies small ones, so this bounds its memory.
  static constexpr size_t kOutstandingMessagesMax = 512;
  static constexpr size_t kOutstandingBytesMax = 64 << 20;
  static constexpr size_t kSmallMax = 64 << 10;
  // A peer that takes nothing fills the queue; then messages to it fail.
  static constexpr size_t kQueuedMessagesMax = 64 << 10;
  static constexpr size_t kQueuedBodyBytesMax = 256 << 20;
  // Sends that make no progress for so long are stuck: the peer is stopped, or the path is dead.
  static constexpr Duration kStallMax = std::chrono::seconds(30);
  // After failing to connect n times in a row: 10 ms * 2^n, at most this.
  static constexpr Duration kRetryAfterMax = std::chrono::milliseconds(500);

  // What all links of a transport share. Must outlive them and the progress of their worker.
  struct Shared {
    ucp_worker_h worker = nullptr;
    unsigned am_id = 0;
    size_t head_max = 0;  // header and body that may travel in the head of an active message
    const Clock* clock = nullptr;
    // Something happened in a callback; call the link's Service() soon.
    std::function<void(std::shared_ptr<UcxLink>)> needs_service;
    // The message will not arrive. May be called from within UCX's callbacks.
    std::function<void(OutMessage, Status)> send_failed;
    size_t closing = 0;  // endpoints that UCX has not let go of yet
    // UCX 1.13 aborts the process when an endpoint is dropped while datagrams still connect it.
    bool waits_to_close = false;
  };

  UcxLink(Shared& shared, uint64_t peer, std::string address)
      : shared_(shared), peer_(peer), address_(std::move(address)) {}

  uint64_t peer() const { return peer_; }
  bool broken() const { return broken_ != UCS_OK; }
  bool connected() const { return connected_; }
  bool busy() const { return outstanding_messages_ > 0; }
  bool stalled(TimePoint now) const { return busy() && now - last_progress_ > kStallMax; }
  // As UCX names it, "tcp/eth0". "" when not connected.
  const std::string& lane() const { return lane_; }
  Status why_broken() const;

  // Nothing to do if open. kUnavailable: UCX refuses, or it is too soon after failures.
  Status Open();
  // Must be open. Queues if there is no room.
  void Send(OutMessage message);
  // After a callback asked for it; not for broken links, those are to be closed.
  void Service();
  // Cuts the endpoint, if there is one; queued sends fail, and outstanding ones unless the endpoint has to wait until
  // it is connected: those may still arrive.
  void Close(const Status& why);
  // Endpoints that had to wait, and need not any more. After a callback asked for it, for broken links, too.
  void CloseOld();

 private:
  struct SendOp;
  struct Flush;

  void Start(OutMessage message);
  void Finish(SendOp* op, ucs_status_t status);
  bool HasRoomFor(size_t bytes) const;
  void WatchConnecting();
  void NoteFailedConnect();
  void Drop(ucp_ep_h endpoint);
  static void OnError(void* link, ucp_ep_h endpoint, ucs_status_t status);
  static void OnSent(void* request, ucs_status_t status, void* op);
  static void OnFlushed(void* request, ucs_status_t status, void* flush);
  static void OnClosed(void* request, ucs_status_t status, void* link);

  Shared& shared_;
  const uint64_t peer_;
  const std::string address_;
  ucp_ep_h endpoint_ = nullptr;
  struct Old {
    uint64_t life;
    ucp_ep_h endpoint;
    bool may_close;
  };
  std::vector<Old> old_;  // closed by us, still connecting
  uint64_t life_ = 0;  // counts endpoints: a callback of an earlier one must not touch this one's figures
  ucs_status_t broken_ = UCS_OK;
  bool connecting_ = false;  // the flush that waits for the connection is under way
  bool connected_ = false;
  std::string lane_;
  unsigned failed_connects_ = 0;
  TimePoint retry_at_{};
  size_t outstanding_messages_ = 0;
  size_t outstanding_bytes_ = 0;
  TimePoint last_progress_{};
  std::deque<OutMessage> queue_;
  size_t queued_body_bytes_ = 0;
};

}  // namespace datasystem::transport
