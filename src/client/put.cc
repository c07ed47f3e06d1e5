#include "client/put.h"

#include <algorithm>

#include "client/copy.h"
#include "session/key_rules.h"

namespace datasystem::client {
namespace {

using proto::SessionMessage;

// Values in one message, so that a batch neither reserves nor sends everything at once. One value
// may be larger.
constexpr uint64_t kBytesMax = 64 << 20;

std::optional<Reservation> TakeLease(const std::shared_ptr<Session>& session, uint64_t size) {
  if (session->index() == nullptr) return std::nullopt;
  while (const auto lease = session->leases().Take(size)) {
    if (!shm::LeaseWord::Take(session->index()->lease(lease->slot), lease->buffer_id)) continue;
    return Reservation{.claim = Claim::OfBuffer(session, lease->buffer_id),
                       .bytes = session->Resolve(lease->location).value()};
  }
  return std::nullopt;
}

// A lease that does not fit what was asked for is left to the worker.
void KeepLease(Session& session, const proto::Lease& lease, uint64_t wished) {
  if (wished == 0 || lease.buffer_id == 0 || lease.slot >= shm::kLeaseSlots) return;
  if (lease.location.size == wished && session.Resolve(lease.location).ok())
    session.leases().Add(lease);
}

// The values [begin, end) of one message.
class Message {
 public:
  Message(const std::shared_ptr<Session>& session, std::span<const Value> values,
          std::span<Status> outcomes)
      : session_(session), values_(values), outcomes_(outcomes), own_(values.size()) {}

  // Brings large values into cache memory. Those that find none have their outcome.
  void Fill(const Deadline& deadline) {
    std::vector<size_t> wanting;
    std::vector<uint64_t> sizes;
    for (size_t i = 0; i < values_.size(); ++i) {
      const uint64_t size = values_[i].bytes.size();
      const bool is_inline = session_->IsInline(size);
      if (values_[i].filled != nullptr || (is_inline && size < shm::kLeaseBytesMin)) continue;
      if (auto leased = TakeLease(session_, size)) {
        own_[i] = std::move(*leased);
      } else if (!is_inline) {
        wanting.push_back(i);
        sizes.push_back(size);
      }
      wish_ =
          session_->index() == nullptr ? 0 : session_->leases().Wish(size, Clock::Steady().Now());
    }
    if (!wanting.empty()) {
      auto reserved = Reserve(session_, sizes, deadline);
      for (size_t n = 0; n < wanting.size(); ++n) {
        const Status status = reserved.ok() ? (*reserved)[n].status() : reserved.status();
        if (status.IsOk()) {
          own_[wanting[n]] = std::move(*(*reserved)[n]);
        } else {
          outcomes_[wanting[n]] = status;
        }
      }
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (own_[i].claim.valid()) Copy(own_[i].bytes, values_[i].bytes);
    }
  }

  bool AllFilled() const {
    return std::ranges::all_of(outcomes_, [](const Status& status) { return status.IsOk(); });
  }

  void Send(const proto::SetParam& param, Atomicity atomicity, const Deadline& deadline) {
    proto::SetRequest request{.items = {},
                              .param = param,
                              .timeout_ms = deadline.worker_timeout_ms(),
                              .all_or_nothing = atomicity == Atomicity::kAllOrNone,
                              .lease_size = wish_};
    std::vector<size_t> sent;
    std::vector<std::span<const std::byte>> payload;
    for (size_t i = 0; i < values_.size(); ++i) {
      if (outcomes_[i].IsError()) continue;
      const Value& value = values_[i];
      sent.push_back(i);
      Reservation* buffer = BufferOf(i);
      request.items.push_back({.key = std::string(value.key),
                               .size = value.bytes.size(),
                               .buffer_id = buffer != nullptr ? buffer->claim.id() : 0});
      if (buffer == nullptr) payload.push_back(value.bytes);
    }
    if (sent.empty()) return;
    auto reply = Call<proto::SetReply>(*session_, SessionMessage::kSet, request.Encode(), payload,
                                       SessionMessage::kSetReply, deadline);
    Status status = reply.status();
    if (reply.ok() && reply->items.size() != sent.size()) {
      status = errors::Runtime("worker {} answered for {} of {} values", session_->worker(),
                               reply->items.size(), sent.size());
    }
    for (size_t n = 0; n < sent.size(); ++n) {
      Status& outcome = outcomes_[sent[n]];
      outcome = status.IsError() ? status : reply->items[n];
      Reservation* buffer = BufferOf(sent[n]);
      if (outcome.IsError() || buffer == nullptr) continue;
      buffer->claim.Settle();
      buffer->bytes = {};
    }
    if (status.IsOk()) KeepLease(*session_, reply->lease, wish_);
  }

 private:
  Reservation* BufferOf(size_t i) {
    if (values_[i].filled != nullptr) return values_[i].filled;
    return own_[i].claim.valid() ? &own_[i] : nullptr;
  }

  const std::shared_ptr<Session>& session_;
  const std::span<const Value> values_;
  const std::span<Status> outcomes_;
  std::vector<Reservation> own_;
  uint64_t wish_ = 0;
};

size_t EndOfMessage(std::span<const Value> values, size_t begin) {
  uint64_t bytes = values[begin].bytes.size();
  size_t end = begin + 1;
  for (; end < values.size() && end - begin < session::kBatchMax; ++end) {
    const uint64_t size = values[end].bytes.size();
    if (size > kBytesMax || bytes + size > kBytesMax) break;
    bytes += size;
  }
  return end;
}

}  // namespace

Result<std::vector<Result<Reservation>>> Reserve(const std::shared_ptr<Session>& session,
                                                 const std::vector<uint64_t>& sizes,
                                                 const Deadline& deadline) {
  const proto::CreateRequest request{.sizes = sizes};
  ASSIGN_OR_RETURN(const proto::CreateReply reply,
                   Call<proto::CreateReply>(*session, SessionMessage::kCreate, request.Encode(), {},
                                            SessionMessage::kCreateReply, deadline));
  // Every buffer is claimed before anything can go wrong.
  std::vector<Claim> claims;
  for (const proto::CreateItem& item : reply.items) {
    claims.push_back(item.buffer_id != 0 ? Claim::OfBuffer(session, item.buffer_id) : Claim());
  }
  if (reply.items.size() != sizes.size()) {
    return errors::Runtime("worker {} answered for {} of {} buffers", session->worker(),
                           reply.items.size(), sizes.size());
  }
  std::vector<Result<Reservation>> reserved;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const proto::CreateItem& item = reply.items[i];
    if (item.status.IsError()) {
      reserved.push_back(item.status);
      continue;
    }
    auto bytes = session->Resolve(item.location);
    if (!claims[i].valid() || !bytes.ok() || bytes->size() != sizes[i]) {
      return errors::Runtime(
          "worker {} does not keep to the protocol: asked for {} bytes of memory, it gave "
          "buffer {}, segment {}, offset {}, size {}",
          session->worker(), sizes[i], item.buffer_id, item.location.segment, item.location.offset,
          item.location.size);
    }
    reserved.push_back(Reservation{.claim = std::move(claims[i]), .bytes = *bytes});
  }
  return reserved;
}

std::vector<Status> Put(const std::shared_ptr<Session>& session, std::span<const Value> values,
                        const proto::SetParam& param, Atomicity atomicity,
                        const Deadline& deadline) {
  std::vector<Status> outcomes(values.size());
  for (size_t begin = 0; begin < values.size();) {
    const size_t end =
        atomicity == Atomicity::kAllOrNone ? values.size() : EndOfMessage(values, begin);
    Message message(session, values.subspan(begin, end - begin),
                    std::span(outcomes).subspan(begin, end - begin));
    message.Fill(deadline);
    if (atomicity == Atomicity::kEach || message.AllFilled())
      message.Send(param, atomicity, deadline);
    begin = end;
  }
  return outcomes;
}

}  // namespace datasystem::client
