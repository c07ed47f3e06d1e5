#include "transport/ucx_transport.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/random.h"
#include "transport/endpoint_address.h"
#include "transport/ucx_log.h"
#include "transport/ucx_payload.h"

namespace datasystem::transport {
namespace {

constexpr unsigned kActiveMessageId = 1;
// Larger bodies go as data: copying them into the head twice costs more than the second buffer.
constexpr size_t kHeadMax = 16 << 10;
// UCX adds headers of its own; its limit already counts them, this is for versions that do not.
constexpr size_t kHeadMargin = 64;
// How many rounds of progress and reaction before Asio's handlers get their turn.
constexpr int kProgressRounds = 16;
constexpr Duration kStallCheckEvery = std::chrono::seconds(2);
constexpr Duration kRefusalLogEvery = std::chrono::minutes(1);
// Last answers may leave during this; then connections are cut.
constexpr Duration kLingerMax = std::chrono::milliseconds(200);
constexpr Duration kCloseMax = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<UcxTransport>> UcxTransport::Create(EventLoop& loop, UcxOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<UcxContext> context, UcxContext::Create(options));
  std::unique_ptr<UcxTransport> transport(new UcxTransport(loop, std::move(options), std::move(context)));
  RETURN_IF_ERROR(transport->Start());
  return transport;
}

UcxTransport::UcxTransport(EventLoop& loop, UcxOptions options, std::unique_ptr<UcxContext> context)
    : loop_(loop),
      options_(std::move(options)),
      context_(std::move(context)),
      messenger_(options_.self, *this, Clock::Steady(), RandomId()),
      timer_(loop.context()) {
  shared_.worker = context_->worker();
  shared_.am_id = kActiveMessageId;
  shared_.head_max = std::min(context_->am_header_max() - kHeadMargin, kHeadMax);
  shared_.clock = &Clock::Steady();
  shared_.waits_to_close = context_->rdma();
  shared_.needs_service = [this](std::shared_ptr<UcxLink> link) { to_service_.push_back(std::move(link)); };
  shared_.send_failed = [this](OutMessage message, Status why) {
    failed_sends_.emplace_back(std::move(message), std::move(why));
  };
}

Status UcxTransport::Start() {
  ucs_status_t status = ucp_worker_get_efd(shared_.worker, &event_fd_);
  if (status != UCS_OK) {
    return errors::Runtime("UCX cannot wait for events on these devices: {}", ucs_status_string(status));
  }
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kActiveMessageId;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = &UcxTransport::OnMessage;
  handler.arg = this;
  status = ucp_worker_set_am_recv_handler(shared_.worker, &handler);
  if (status != UCS_OK) {
    return errors::Runtime("UCX offers no active messages: {}", ucs_status_string(status));
  }
  loop_.AddPoller(this);
  return Status::OK();
}

UcxTransport::~UcxTransport() {
  *alive_ = false;
  loop_.RemovePoller(this);
  EndCalls();
  CloseAll();
}

void UcxTransport::EndCalls() {
  for (auto& waiter : messenger_.Stop(errors::ShuttingDown("this worker is stopping"))) {
    loop_.Post([waiter = std::move(waiter)] { waiter->Resume(); });
  }
}

void UcxTransport::CloseAll() {
  auto progress_until = [this](Duration limit, auto finished) {
    const TimePoint end = Clock::Steady().Now() + limit;
    while (!finished() && Clock::Steady().Now() < end) {
      ucp_worker_progress(shared_.worker);
      for (const auto& link : std::exchange(to_service_, {})) link->CloseOld();
    }
  };
  arrived_.clear();
  ucp_request_param_t params{};
  ucs_status_ptr_t flush = ucp_worker_flush_nbx(shared_.worker, &params);
  if (UCS_PTR_IS_PTR(flush)) {
    progress_until(kLingerMax, [flush] { return ucp_request_check_status(flush) != UCS_INPROGRESS; });
  }
  for (auto& [incarnation, link] : links_) link->Close(errors::ShuttingDown("this worker is stopping"));
  progress_until(kCloseMax, [this] { return shared_.closing == 0 && receiving_ == 0; });
  if (UCS_PTR_IS_PTR(flush)) ucp_request_free(flush);
  if (shared_.closing > 0 || receiving_ > 0) {
    // UCX aborts the process when it destroys a worker with transfers under way: rather leave it to exit.
    LOG_WARNING("left connections unfinished closing={} transfers={}", shared_.closing, receiving_);
    (void)context_.release();
  }
  arrived_.clear();
  to_service_.clear();
  links_.clear();
}

std::string UcxTransport::endpoint() const { return WrapEndpoint(context_->address()); }

void UcxTransport::SetPeers(std::vector<Peer> peers) {
  touched_ = true;
  messenger_.SetPeers(std::move(peers));
}

void UcxTransport::SetRequestHandler(RequestHandler handler) {
  messenger_.SetRequestHandler(std::move(handler));
}

asio::awaitable<Result<Answer>> UcxTransport::Call(PeerId to, uint16_t type, std::string body,
                                                   TimePoint deadline,
                                                   std::shared_ptr<PayloadTarget> target) {
  return messenger_.Call(std::move(to), type, std::move(body), deadline, std::move(target));
}

void UcxTransport::Respond(const ReturnAddress& to, const Status& status, std::string body,
                           Payload payload) {
  messenger_.Respond(to, status, std::move(body), std::move(payload));
}

void UcxTransport::Forward(const ReturnAddress& caller, const PeerId& to, uint16_t type, std::string body) {
  messenger_.Forward(caller, to, type, std::move(body));
}

UcxLink* UcxTransport::OpenLink(const Peer& peer) {
  auto& link = links_[peer.id.incarnation];
  Status status;
  if (link == nullptr) {
    Result<std::string> address = UnwrapEndpoint(peer.endpoint);
    if (address.ok()) {
      link = std::make_shared<UcxLink>(shared_, peer.id.incarnation, *std::move(address));
    } else {
      status = address.status();
    }
  }
  if (status.IsOk()) status = link->Open();
  if (status.IsOk()) return link.get();
  if (link == nullptr) links_.erase(peer.id.incarnation);
  messenger_.LinkFailed(peer.id.incarnation, /*connected=*/false, status);
  return nullptr;
}

void UcxTransport::Connect(const Peer& peer) {
  touched_ = true;
  if (in_callback_) {
    to_connect_.push_back(peer);
  } else {
    (void)OpenLink(peer);
  }
}

void UcxTransport::Send(const Peer& peer, OutMessage message) {
  touched_ = true;
  if (UcxLink* link = OpenLink(peer)) {
    link->Send(std::move(message));
  } else {
    failed_sends_.emplace_back(std::move(message), errors::Unavailable("cannot connect"));
  }
}

void UcxTransport::Reset(const Peer& peer, const Status& why) {
  touched_ = true;
  auto found = links_.find(peer.id.incarnation);
  if (found == links_.end()) return;
  LOG_WARNING("cut the connection peer={} reason=\"{}\"", peer.id.address, why.GetMsg());
  const bool connected = found->second->connected();
  found->second->Close(why);
  messenger_.LinkFailed(peer.id.incarnation, connected, why);
}

void UcxTransport::Forget(const Peer& peer) {
  touched_ = true;
  std::erase_if(to_connect_, [&peer](const Peer& each) { return each.id == peer.id; });
  auto found = links_.find(peer.id.incarnation);
  if (found == links_.end()) return;
  found->second->Close(errors::PeerDead("peer {} has left the cluster", peer.id.address));
  links_.erase(found);
}

std::string UcxTransport::Lane(const Peer& peer) const {
  auto found = links_.find(peer.id.incarnation);
  return found == links_.end() ? "" : found->second->lane();
}

ucs_status_t UcxTransport::OnMessage(void* self, const void* head, size_t head_size, void* data,
                                     size_t size, const ucp_am_recv_param_t* param) {
  auto* transport = static_cast<UcxTransport*>(self);
  transport->in_callback_ = true;
  const ucs_status_t status = transport->Accept(
      {static_cast<const std::byte*>(head), head_size}, {static_cast<std::byte*>(data), size},
      (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0);
  transport->in_callback_ = false;
  return status;
}

// `data` points to the bytes, or with `rendezvous` to UCX's descriptor of as many bytes.
ucs_status_t UcxTransport::Accept(std::span<const std::byte> head, std::span<std::byte> data,
                                  bool rendezvous) {
  Result<WireHeader> header = WireHeader::Decode(head, data.size());
  if (!header.ok()) {
    Refuse(header.status());
    return UCS_OK;  // which also ends the sender's rendezvous, without a transfer
  }
  InMessage message;
  message.header = *header;
  if (header->body_in_data && rendezvous) {
    if (incoming_body_bytes_ + data.size() > kIncomingBodyBytesMax) {
      Refuse(errors::OutOfMemory("too many large bodies at one time"));
      return UCS_OK;
    }
    AcceptLargeBody(std::move(message), data.data());
    return UCS_INPROGRESS;
  }
  const std::span<const std::byte> body = header->body_in_data ? data : head.subspan(WireHeader::kSize);
  message.body.assign(reinterpret_cast<const char*>(body.data()), body.size());
  if (header->payload_size == 0) {
    arrived_.push_back(std::move(message));
    return UCS_OK;
  }
  if (rendezvous) {
    message.payload = std::make_unique<RendezvousPayload>(shared_.worker, data.data(), receiving_);
    arrived_.push_back(std::move(message));
    return UCS_INPROGRESS;
  }
  message.payload = std::make_unique<EagerPayload>(data);
  if (arrived_.empty()) {
    messenger_.Deliver(std::move(message));  // now, while the bytes are here: saves a copy
  } else {
    message.payload->Retain();
    arrived_.push_back(std::move(message));
  }
  return UCS_OK;
}

void UcxTransport::AcceptLargeBody(InMessage message, void* descriptor) {
  // Shared with the closure: its bytes must not move while they arrive.
  auto whole = std::make_shared<InMessage>(std::move(message));
  whole->body.resize(whole->header.body_size);
  incoming_body_bytes_ += whole->body.size();
  RendezvousPayload payload(shared_.worker, descriptor, receiving_);
  payload.Receive({std::as_writable_bytes(std::span(whole->body))}, [this, whole](const Status& status) {
    incoming_body_bytes_ -= whole->body.size();
    if (status.IsOk()) arrived_.push_back(std::move(*whole));
  });
}

void UcxTransport::Refuse(const Status& why) {
  ++refused_;
  const TimePoint now = Clock::Steady().Now();
  if (now - refusal_logged_ < kRefusalLogEvery) return;
  refusal_logged_ = now;
  LOG_WARNING("refused a malformed message from the network total={} reason=\"{}\"", refused_, why.GetMsg());
}

bool UcxTransport::HasNotes() const {
  return !to_service_.empty() || !arrived_.empty() || !failed_sends_.empty() || !to_connect_.empty();
}

size_t UcxTransport::ActOnNotes() {
  size_t acted = 0;
  for (const auto& link : std::exchange(to_service_, {})) {
    ++acted;
    link->CloseOld();
    if (!link->broken()) {
      link->Service();
      continue;
    }
    const bool connected = link->connected();
    const Status why = link->why_broken();
    link->Close(why);
    messenger_.LinkFailed(link->peer(), connected, why);
  }
  for (InMessage& message : std::exchange(arrived_, {})) {
    ++acted;
    messenger_.Deliver(std::move(message));
  }
  for (const auto& [message, why] : std::exchange(failed_sends_, {})) {
    ++acted;
    messenger_.SendFailed(message, why);
  }
  for (const Peer& peer : std::exchange(to_connect_, {})) {
    ++acted;
    (void)OpenLink(peer);
  }
  return acted;
}

size_t UcxTransport::Poll() {
  size_t done = 0;
  for (int round = 0; round < kProgressRounds; ++round) {
    // Answers leave before UCX looks for more, which costs a system call.
    const size_t progress = ucp_worker_progress(shared_.worker);
    const size_t acted = ActOnNotes() + messenger_.RunReady();
    done += progress + acted;
    if (progress + acted == 0) break;
  }
  ArmTimer();
  return done;
}

bool UcxTransport::PrepareToSleep() {
  if (HasNotes() || messenger_.has_ready()) return false;
  if (ucp_worker_arm(shared_.worker) != UCS_OK) return false;
  touched_ = false;
  return true;
}

bool UcxTransport::Busy() const { return touched_ || HasNotes() || messenger_.has_ready(); }

std::optional<TimePoint> UcxTransport::NextCheck() const {
  std::optional<TimePoint> next = messenger_.next_deadline();
  for (const auto& [incarnation, link] : links_) {
    if (link->busy()) return std::min(next.value_or(TimePoint::max()), next_stall_check_);
  }
  return next;
}

void UcxTransport::ArmTimer() {
  const std::optional<TimePoint> next = NextCheck();
  // Armed too early is harmless, so a call's end leaves it alone: no system call per call.
  if (!next.has_value() || armed_for_ <= *next) return;
  armed_for_ = *next;
  timer_.expires_at(armed_for_);
  timer_.async_wait([this, alive = alive_](asio::error_code error) {
    if (!error && *alive) OnTimer();
  });
}

void UcxTransport::OnTimer() {
  touched_ = true;
  const TimePoint now = Clock::Steady().Now();
  armed_for_ = TimePoint::max();
  messenger_.Expire();
  if (now >= next_stall_check_) {
    next_stall_check_ = now + kStallCheckEvery;
    for (const auto& [incarnation, link] : links_) {
      if (!link->stalled(now)) continue;
      const bool connected = link->connected();
      const Status why = errors::PeerDead("it takes no data");
      LOG_WARNING("cut the connection, the peer takes no data incarnation={}", incarnation);
      link->Close(why);
      messenger_.LinkFailed(incarnation, connected, why);
    }
  }
  ArmTimer();
}

}  // namespace datasystem::transport
