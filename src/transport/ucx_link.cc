#include "transport/ucx_link.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "transport/ucx_log.h"

namespace datasystem::transport {
namespace {

size_t BytesOf(const OutMessage& message) { return message.body.size() + message.payload.size(); }

// UCX tells an endpoint's lanes only as text: "lane[0]:  0:tcp/lo.0 md[0]  -> ... am am_bw#0 keepalive".
std::string LanesFromText(std::string_view text) {
  std::string lanes;
  while (!text.empty()) {
    const size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    const size_t mark = line.find("lane[");
    if (mark == std::string_view::npos || line.find(" am") == std::string_view::npos) continue;
    line = line.substr(mark);
    size_t begin = line.find("]:");
    if (begin == std::string_view::npos) continue;
    begin = line.find(':', begin + 2);  // behind the resource's number
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin + 1);
    line = line.substr(0, line.find(' '));
    line = line.substr(0, line.rfind('.'));  // the number of the path
    if (lanes.find(line) == std::string::npos) lanes.append(lanes.empty() ? "" : ",").append(line);
  }
  return lanes;
}

std::string LanesOf(ucp_ep_h endpoint) {
  char* text = nullptr;
  size_t size = 0;
  FILE* stream = ::open_memstream(&text, &size);
  if (stream == nullptr) return "";
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  std::string lanes = LanesFromText({text, size});
  std::free(text);
  return lanes;
}

}  // namespace

// One active message on its way. Lives until UCX has let go of its memory.
struct UcxLink::SendOp {
  std::shared_ptr<UcxLink> link;
  uint64_t life;
  OutMessage message;
  std::string head;
  std::vector<ucp_dt_iov_t> parts;
};

struct UcxLink::Flush {
  std::shared_ptr<UcxLink> link;
  uint64_t life;
};

Status UcxLink::why_broken() const { return errors::PeerDead("{}", ucs_status_string(broken_)); }

Status UcxLink::Open() {
  if (endpoint_ != nullptr) return Status::OK();
  const TimePoint now = shared_.clock->Now();
  if (now < retry_at_) return errors::Unavailable("it refused connections a moment ago");
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.address = reinterpret_cast<const ucp_address_t*>(address_.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &UcxLink::OnError;
  params.err_handler.arg = this;
  const UcxComplaints complaints;
  const ucs_status_t status = ucp_ep_create(shared_.worker, &params, &endpoint_);
  if (status != UCS_OK) {
    endpoint_ = nullptr;
    NoteFailedConnect();
    return errors::Unavailable("{} {}", ucs_status_string(status), complaints.text());
  }
  ++life_;
  broken_ = UCS_OK;
  last_progress_ = now;
  WatchConnecting();
  return Status::OK();
}

// Also because UCX 1.13 loses a descriptor with each connection that is refused at once.
void UcxLink::NoteFailedConnect() {
  // The first retry is free: the other side may just have started.
  const auto wait = std::chrono::milliseconds(10) * (1 << std::min(failed_connects_, 6U));
  if (failed_connects_++ > 0) retry_at_ = shared_.clock->Now() + std::min<Duration>(wait, kRetryAfterMax);
}

void UcxLink::WatchConnecting() {
  // A flush ends when there is a connection.
  auto flush = std::make_unique<Flush>(Flush{shared_from_this(), life_});
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &UcxLink::OnFlushed;
  params.user_data = flush.get();
  ucs_status_ptr_t request = ucp_ep_flush_nbx(endpoint_, &params);
  connecting_ = UCS_PTR_IS_PTR(request);
  if (connecting_) {
    (void)flush.release();
  } else {
    OnFlushed(nullptr, UCS_PTR_STATUS(request), flush.release());
  }
}

void UcxLink::OnFlushed(void* request, ucs_status_t status, void* flush) {
  const std::unique_ptr<Flush> owned(static_cast<Flush*>(flush));
  if (request != nullptr) ucp_request_free(request);
  UcxLink& link = *owned->link;
  for (Old& old : link.old_) {
    if (old.life != owned->life) continue;
    old.may_close = true;
    link.shared_.needs_service(owned->link);
    return;
  }
  if (owned->life != link.life_ || link.endpoint_ == nullptr) return;
  link.connecting_ = false;
  if (status != UCS_OK) return;
  link.connected_ = true;
  link.failed_connects_ = 0;
  link.shared_.needs_service(owned->link);
}

void UcxLink::OnError(void* self, ucp_ep_h endpoint, ucs_status_t status) {
  auto* link = static_cast<UcxLink*>(self);
  if (endpoint != link->endpoint_) return;
  link->broken_ = status;
  link->shared_.needs_service(link->shared_from_this());
}

bool UcxLink::HasRoomFor(size_t bytes) const {
  if (outstanding_messages_ == 0) return true;
  return outstanding_messages_ < kOutstandingMessagesMax && outstanding_bytes_ + bytes <= kOutstandingBytesMax;
}

void UcxLink::Send(OutMessage message) {
  DCHECK(endpoint_ != nullptr);
  // Small messages pass by payloads that wait: a call need not take as long as its neighbour's transfer.
  const bool small = BytesOf(message) <= kSmallMax && outstanding_messages_ < kOutstandingMessagesMax;
  if (small || (queue_.empty() && HasRoomFor(BytesOf(message)))) {
    Start(std::move(message));
    return;
  }
  if (queue_.size() >= kQueuedMessagesMax || queued_body_bytes_ + message.body.size() > kQueuedBodyBytesMax) {
    shared_.send_failed(std::move(message), errors::TryAgain("too many messages wait for this peer"));
    return;
  }
  queued_body_bytes_ += message.body.size();
  queue_.push_back(std::move(message));
}

void UcxLink::Service() {
  if (connected_ && lane_.empty()) lane_ = LanesOf(endpoint_);
  while (!queue_.empty() && !broken() && HasRoomFor(BytesOf(queue_.front()))) {
    OutMessage message = std::move(queue_.front());
    queue_.pop_front();
    queued_body_bytes_ -= message.body.size();
    Start(std::move(message));
  }
}

void UcxLink::Start(OutMessage message) {
  auto op = std::make_unique<SendOp>(SendOp{shared_from_this(), life_, std::move(message), {}, {}});
  WireHeader& header = op->message.header;
  header.body_size = op->message.body.size();
  header.payload_size = op->message.payload.size();
  header.body_in_data = header.payload_size == 0 && WireHeader::kSize + header.body_size > shared_.head_max;
  const WireHeader::Bytes encoded = header.Encode();
  op->head.reserve(encoded.size() + (header.body_in_data ? 0 : header.body_size));
  op->head.assign(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  if (!header.body_in_data) op->head += op->message.body;

  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &UcxLink::OnSent;
  params.user_data = op.get();
  const void* data = nullptr;
  size_t count = 0;
  if (header.body_in_data) {
    data = op->message.body.data();
    count = op->message.body.size();
  } else if (header.payload_size > 0) {
    for (const auto& part : op->message.payload.parts) {
      if (!part.empty()) op->parts.push_back({const_cast<std::byte*>(part.data()), part.size()});
    }
    if (op->parts.size() == 1) {
      data = op->parts[0].buffer;
      count = op->parts[0].length;
    } else {
      params.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
      params.datatype = ucp_dt_make_iov();
      data = op->parts.data();
      count = op->parts.size();
    }
  }
  if (outstanding_messages_ == 0) last_progress_ = shared_.clock->Now();
  ++outstanding_messages_;
  outstanding_bytes_ += BytesOf(op->message);
  SendOp* sent = op.release();
  ucs_status_ptr_t request = ucp_am_send_nbx(endpoint_, shared_.am_id, sent->head.data(), sent->head.size(),
                                             data, count, &params);
  if (!UCS_PTR_IS_PTR(request)) Finish(sent, UCS_PTR_STATUS(request));
}

void UcxLink::OnSent(void* request, ucs_status_t status, void* op) {
  ucp_request_free(request);
  auto* sent = static_cast<SendOp*>(op);
  const std::shared_ptr<UcxLink> link = sent->link;
  link->Finish(sent, status);
}

void UcxLink::Finish(SendOp* op, ucs_status_t status) {
  const std::unique_ptr<SendOp> owned(op);
  if (op->life == life_) {
    --outstanding_messages_;
    outstanding_bytes_ -= BytesOf(op->message);
    if (status == UCS_OK) last_progress_ = shared_.clock->Now();
    if (!queue_.empty()) shared_.needs_service(shared_from_this());
  }
  if (status != UCS_OK) {
    shared_.send_failed(std::move(op->message), errors::PeerDead("{}", ucs_status_string(status)));
  }
}

void UcxLink::Close(const Status& why) {
  if (endpoint_ == nullptr) return;
  if (!connected_) NoteFailedConnect();
  ucp_ep_h endpoint = std::exchange(endpoint_, nullptr);
  const bool waits = shared_.waits_to_close && std::exchange(connecting_, false) && !broken();
  const uint64_t life = life_++;
  broken_ = UCS_OK;
  connected_ = false;
  lane_.clear();
  outstanding_messages_ = 0;
  outstanding_bytes_ = 0;
  for (OutMessage& message : std::exchange(queue_, {})) shared_.send_failed(std::move(message), why);
  queued_body_bytes_ = 0;
  if (waits) {
    old_.push_back({life, endpoint, false});  // its flush ends when it is connected, or has failed
    ++shared_.closing;
  } else {
    Drop(endpoint);
  }
}

void UcxLink::CloseOld() {
  for (const Old& old : old_) {
    if (!old.may_close) continue;
    --shared_.closing;
    Drop(old.endpoint);
  }
  std::erase_if(old_, [](const Old& old) { return old.may_close; });
}

void UcxLink::Drop(ucp_ep_h endpoint) {
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  params.cb.send = &UcxLink::OnClosed;
  params.user_data = new std::shared_ptr<UcxLink>(shared_from_this());
  ++shared_.closing;
  ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint, &params);
  if (!UCS_PTR_IS_PTR(request)) OnClosed(nullptr, UCS_PTR_STATUS(request), params.user_data);
}

void UcxLink::OnClosed(void* request, ucs_status_t, void* link) {
  if (request != nullptr) ucp_request_free(request);
  const std::unique_ptr<std::shared_ptr<UcxLink>> owned(static_cast<std::shared_ptr<UcxLink>*>(link));
  --(*owned)->shared_.closing;
}

}  // namespace datasystem::transport
