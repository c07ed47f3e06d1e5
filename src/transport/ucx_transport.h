// Transport over UCX active messages: tcp, or RDMA where the machine has it and enable_rdma is set.
//
// Requests and answers with their bodies travel in the head of an active message as far as it holds,
// else as its data; payload is an answer's data and large payload goes by rendezvous, straight from the
// owner's memory into the caller's.
//
// UCX accepts tcp connections on a thread of its own; everything else runs on the event loop's thread.
#pragma once

#include <asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.h"
#include "transport/carrier.h"
#include "transport/messenger.h"
#include "transport/transport.h"
#include "transport/ucx_context.h"
#include "transport/ucx_link.h"

namespace datasystem::transport {

// Create and destroy it on the loop's thread, or while the loop does not run; the loop must outlive it.
class UcxTransport final : public Transport, public Poller, private Carrier {
 public:
  // Large bodies that peers may have on their way to us at one time; more are refused.
  static constexpr size_t kIncomingBodyBytesMax = 256 << 20;

  // Errors: see UcxContext::Create.
  static Result<std::unique_ptr<UcxTransport>> Create(EventLoop& loop, UcxOptions options);
  ~UcxTransport() override;
  // Calls that wait end with kShuttingDown in the loop's next turn. Destruction does the same; but where callers
  // must be gone before, because they refer to what is destroyed first, it is too late.
  void EndCalls();

  // Registers a whole segment once, so that transfers to and from it need no registration of their own.
  // It must stay mapped as long as this object lives.
  Status RegisterMemory(std::span<std::byte> segment) { return context_->RegisterMemory(segment); }

  // Transport
  std::string endpoint() const override;
  void SetPeers(std::vector<Peer> peers) override;
  void SetRequestHandler(RequestHandler handler) override;
  asio::awaitable<Result<Answer>> Call(PeerId to, uint16_t type, std::string body, TimePoint deadline,
                                       std::shared_ptr<PayloadTarget> target) override;
  void Respond(const ReturnAddress& to, const Status& status, std::string body, Payload payload) override;
  void Forward(const ReturnAddress& caller, const PeerId& to, uint16_t type, std::string body) override;
  std::vector<PeerStatus> peers() const override { return messenger_.peers(); }

  // Malformed messages so far.
  uint64_t refused_messages() const { return refused_; }

  // Poller
  size_t Poll() override;
  bool PrepareToSleep() override;
  bool Busy() const override;
  int event_fd() const override { return event_fd_; }

 private:
  UcxTransport(EventLoop& loop, UcxOptions options, std::unique_ptr<UcxContext> context);
  Status Start();

  // Carrier
  void Connect(const Peer& peer) override;
  void Send(const Peer& peer, OutMessage message) override;
  void Reset(const Peer& peer, const Status& why) override;
  void Forget(const Peer& peer) override;
  std::string Lane(const Peer& peer) const override;
  size_t body_with_payload_max() const override { return shared_.head_max - WireHeader::kSize; }

  UcxLink* OpenLink(const Peer& peer);
  static ucs_status_t OnMessage(void* self, const void* head, size_t head_size, void* data, size_t size,
                                const ucp_am_recv_param_t* param);
  ucs_status_t Accept(std::span<const std::byte> head, std::span<std::byte> data, bool rendezvous);
  void AcceptLargeBody(InMessage message, void* descriptor);
  void Refuse(const Status& why);
  size_t ActOnNotes();
  bool HasNotes() const;
  void ArmTimer();
  void OnTimer();
  std::optional<TimePoint> NextCheck() const;
  void CloseAll();

  EventLoop& loop_;
  const UcxOptions options_;
  std::unique_ptr<UcxContext> context_;
  int event_fd_ = -1;
  UcxLink::Shared shared_;
  Messenger messenger_;
  std::unordered_map<uint64_t, std::shared_ptr<UcxLink>> links_;

  // What UCX's callbacks noted down for after progress.
  std::vector<std::shared_ptr<UcxLink>> to_service_;
  std::vector<InMessage> arrived_;
  std::vector<std::pair<OutMessage, Status>> failed_sends_;
  std::vector<Peer> to_connect_;
  bool in_callback_ = false;

  size_t receiving_ = 0;            // rendezvous transfers into our memory
  size_t incoming_body_bytes_ = 0;  // of large bodies on their way
  uint64_t refused_ = 0;
  TimePoint refusal_logged_{};

  asio::steady_timer timer_;
  bool touched_ = true;  // UCX was asked for something since PrepareToSleep()
  TimePoint armed_for_ = TimePoint::max();
  TimePoint next_stall_check_{};
  // Handlers that are queued when we die must not touch us.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace datasystem::transport
