#include "transport/messenger.h"

#include <algorithm>
#include <unordered_set>

#include "base/log.h"
#include "transport/places.h"

namespace datasystem::transport {
namespace {

constexpr size_t kLeftMax = 4096;
constexpr size_t kEarlyMovesMax = 16;
constexpr size_t kErrorTextMax = 4096;

}  // namespace

Messenger::Messenger(PeerId self, Carrier& carrier, const Clock& clock, uint64_t first_request_id)
    : self_(std::move(self)), carrier_(carrier), clock_(clock), calls_(first_request_id) {}

Messenger::~Messenger() = default;

Messenger::Member* Messenger::Find(uint64_t incarnation) {
  auto found = members_.find(incarnation);
  return found == members_.end() ? nullptr : &found->second;
}

Messenger::Member* Messenger::Find(const PeerId& id) {
  Member* member = Find(id.incarnation);
  return member != nullptr && member->peer.id == id ? member : nullptr;
}

bool Messenger::HasLeft(uint64_t incarnation) const {
  return std::find(left_.begin(), left_.end(), incarnation) != left_.end();
}

Status Messenger::WhyUnreachable(const PeerId& to) const {
  if (HasLeft(to.incarnation)) return errors::PeerDead("peer {} has left the cluster", to.address);
  for (const auto& [incarnation, member] : members_) {
    if (member.peer.id.address == to.address) {
      return errors::PeerDead("peer {} has been restarted", to.address);
    }
  }
  return errors::Unavailable("peer {} is not a member of the cluster", to.address);
}

void Messenger::SetPeers(std::vector<Peer> peers) {
  std::map<uint64_t, Peer> wanted;
  for (Peer& peer : peers) {
    const uint64_t incarnation = peer.id.incarnation;
    if (incarnation == self_.incarnation || incarnation == 0) continue;
    if (!wanted.try_emplace(incarnation, std::move(peer)).second) {
      LOG_WARNING("two members have one incarnation, ignoring one incarnation={}", incarnation);
    }
  }
  std::vector<uint64_t> gone;
  for (const auto& [incarnation, member] : members_) {
    auto found = wanted.find(incarnation);
    const bool same = found != wanted.end() && found->second.id == member.peer.id &&
                      found->second.endpoint == member.peer.endpoint;
    if (!same) gone.push_back(incarnation);
  }
  for (uint64_t incarnation : gone) {
    Leave(incarnation, errors::PeerDead("peer {} has left the cluster",
                                        members_.at(incarnation).peer.id.address));
  }
  for (auto& [incarnation, peer] : wanted) {
    std::erase(left_, incarnation);
    auto [member, added] = members_.try_emplace(incarnation);
    if (!added) continue;
    member->second.status.id = peer.id;
    member->second.peer = std::move(peer);
    if (awaited_.erase(incarnation) > 0) carrier_.Connect(member->second.peer);
  }
  Unpark();
}

void Messenger::Leave(uint64_t incarnation, const Status& why) {
  auto node = members_.extract(incarnation);
  left_.push_back(incarnation);
  if (left_.size() > kLeftMax) left_.pop_front();
  calls_.EndAllOn(incarnation, why);
  carrier_.Forget(node.mapped().peer);
}

void Messenger::Park(InMessage message) {
  const size_t bytes = sizeof(Parked) + message.body.size() + message.header.payload_size;
  // Who was cut off may send on for long without knowing: half of the places are for others.
  const size_t places = HasLeft(message.header.sender) ? kParkedMessagesMax / 2 : kParkedMessagesMax;
  if (parked_.size() >= places || bytes > kParkedBytesMax - parked_bytes_) {
    LOG_DEBUG("dropped a message of an unknown sender, too many wait sender={}", message.header.sender);
    return;
  }
  if (message.payload != nullptr) message.payload->Retain();
  parked_bytes_ += bytes;
  parked_.push_back({std::move(message), bytes, clock_.Now() + kParkedFor});
}

void Messenger::Unpark() {
  std::list<Parked> waiting;
  waiting.swap(parked_);
  parked_bytes_ = 0;
  for (Parked& parked : waiting) {
    const WireHeader& header = parked.message.header;
    Member* sender = Find(header.sender);
    const bool caller_missing = header.kind == MessageKind::kForwarded && Find(header.subject) == nullptr &&
                                !HasLeft(header.subject);
    if (sender == nullptr || caller_missing) {
      parked_bytes_ += parked.bytes;
      parked_.push_back(std::move(parked));
    } else {
      Dispatch(*sender, std::move(parked.message));
    }
  }
}

asio::awaitable<Result<Answer>> Messenger::Call(PeerId to, uint16_t type, std::string body,
                                                TimePoint deadline,
                                                std::shared_ptr<PayloadTarget> target) {
  if (body.size() > Transport::kBodyMax) {
    co_return errors::Invalid("request of {} bytes, at most {} fit", body.size(), Transport::kBodyMax);
  }
  Member* member = Find(to);
  if (member == nullptr) co_return WhyUnreachable(to);
  ++member->status.calls;
  if (deadline <= clock_.Now()) {
    ++member->status.failures;
    co_return errors::DeadlineExceeded("no time left for a call to {}", to.address);
  }
  std::shared_ptr<PendingCall> call = calls_.Add(to.incarnation, deadline, std::move(target));
  OutMessage message;
  message.header.kind = MessageKind::kRequest;
  message.header.type = type;
  message.header.request_id = call->id;
  message.header.sender = self_.incarnation;
  message.header.receiver = to.incarnation;
  message.body = std::move(body);
  carrier_.Send(member->peer, std::move(message));
  // From here on `this` may be gone when the coroutine goes on.
  co_return co_await PendingCalls::Wait(std::move(call));
}

void Messenger::Respond(const ReturnAddress& to, const Status& status, std::string body,
                        Payload payload) {
  Member* caller = Find(to.caller);
  if (caller == nullptr) {
    LOG_DEBUG("dropped an answer to {}, which is not a member", to.caller.address);
    return;
  }
  SendAnswer(*caller, to.request_id, status, std::move(body), std::move(payload));
}

void Messenger::SendAnswer(Member& to, uint64_t request_id, const Status& status, std::string body,
                           Payload payload) {
  OutMessage answer;
  answer.header.kind = MessageKind::kAnswer;
  answer.header.request_id = request_id;
  answer.header.sender = self_.incarnation;
  answer.header.receiver = to.peer.id.incarnation;
  if (status.IsError() || body.size() > Transport::kBodyMax) {
    answer.header.status = status.IsError() ? status.GetCode() : K_OUT_OF_RANGE;
    answer.body = status.IsError() ? status.GetMsg().substr(0, kErrorTextMax)
                                   : "the answer's body is larger than a message may be";
    carrier_.Send(to.peer, std::move(answer));
    return;
  }
  if (payload.size() > 0 && body.size() > carrier_.body_with_payload_max()) {
    OutMessage before;
    before.header = answer.header;
    before.header.kind = MessageKind::kAnswerBody;
    before.body = std::move(body);
    carrier_.Send(to.peer, std::move(before));
    answer.header.body_before = true;
    body.clear();
  }
  to.status.payload_bytes_sent += payload.size();
  answer.body = std::move(body);
  answer.payload = std::move(payload);
  carrier_.Send(to.peer, std::move(answer));
}

void Messenger::Forward(const ReturnAddress& caller, const PeerId& to, uint16_t type, std::string body) {
  Member* waiting = Find(caller.caller);
  if (waiting == nullptr) {
    LOG_DEBUG("dropped a request of {}, which is not a member", caller.caller.address);
    return;
  }
  Member* next = Find(to);
  if (next == nullptr || next == waiting || body.size() > Transport::kBodyMax) {
    const Status why = next == nullptr   ? errors::PeerDead("peer {} is not a member", to.address)
                       : next == waiting ? errors::TryAgain("the caller would have to ask itself")
                                         : errors::Invalid("request of {} bytes", body.size());
    SendAnswer(*waiting, caller.request_id, why, "", {});
    return;
  }
  OutMessage moved;
  moved.header.kind = MessageKind::kMoved;
  moved.header.request_id = caller.request_id;
  moved.header.sender = self_.incarnation;
  moved.header.receiver = caller.caller.incarnation;
  moved.header.subject = to.incarnation;
  carrier_.Send(waiting->peer, std::move(moved));

  OutMessage request;
  request.header.kind = MessageKind::kForwarded;
  request.header.type = type;
  request.header.request_id = caller.request_id;
  request.header.sender = self_.incarnation;
  request.header.receiver = to.incarnation;
  request.header.subject = caller.caller.incarnation;
  request.body = std::move(body);
  carrier_.Send(next->peer, std::move(request));
}

void Messenger::SendFailed(const OutMessage& message, const Status& why) {
  if (Member* receiver = Find(message.header.receiver)) ++receiver->status.failures;
  if (message.header.kind != MessageKind::kForwarded) return;
  if (Member* caller = Find(message.header.subject)) {
    SendAnswer(*caller, message.header.request_id,
               errors::PeerDead("the request could not be handed on: {}", why.GetMsg()), "", {});
  }
}

void Messenger::Deliver(InMessage message) {
  const WireHeader& header = message.header;
  if (header.receiver != self_.incarnation) {
    RefuseWrongReceiver(header);
    return;
  }
  Member* sender = Find(header.sender);
  if (sender == nullptr) {
    // Also of one that has left: if it joins again under its incarnation, it may know so before we do.
    Park(std::move(message));
  } else {
    Dispatch(*sender, std::move(message));
  }
}

void Messenger::RefuseWrongReceiver(const WireHeader& header) {
  if (header.receiver == 0) return;
  uint64_t caller = 0;
  if (header.kind == MessageKind::kRequest) caller = header.sender;
  if (header.kind == MessageKind::kForwarded) caller = header.subject;
  Member* member = Find(caller);
  if (member == nullptr) return;
  OutMessage answer;
  answer.header.kind = MessageKind::kAnswer;
  answer.header.request_id = header.request_id;
  answer.header.status = K_TRY_AGAIN;
  // In the name of the one it was meant for: the caller may not know us yet, as we are now.
  answer.header.sender = header.receiver;
  answer.header.receiver = caller;
  answer.body = self_.address + " is another process now, refresh the view of the cluster";
  carrier_.Send(member->peer, std::move(answer));
}

void Messenger::Dispatch(Member& sender, InMessage message) {
  const WireHeader& header = message.header;
  switch (header.kind) {
    case MessageKind::kRequest: return OnRequest(sender.peer.id, std::move(message));
    case MessageKind::kForwarded: {
      if (Member* caller = Find(header.subject)) return OnRequest(caller->peer.id, std::move(message));
      if (!HasLeft(header.subject) && header.subject != self_.incarnation) Park(std::move(message));
      return;
    }
    case MessageKind::kAnswer: return OnAnswer(sender, std::move(message));
    case MessageKind::kAnswerBody: {
      PendingCall* call = calls_.Find(header.request_id);
      if (call == nullptr || call->early_body.has_value()) return;
      call->early_body = std::move(message.body);
      if (!call->early_answer.has_value()) return;
      InMessage answer = std::move(*call->early_answer);
      call->early_answer.reset();
      return OnAnswer(sender, std::move(answer));
    }
    case MessageKind::kMoved: return OnMoved(header);
    case MessageKind::kCut:
      return carrier_.Reset(sender.peer, errors::PeerDead("the peer has cut the connection"));
  }
}

void Messenger::OnRequest(const PeerId& caller, InMessage message) {
  Request request;
  request.type = message.header.type;
  request.body = std::move(message.body);
  request.from = {caller, message.header.request_id};
  inbox_.push_back(std::move(request));
}

void Messenger::OnAnswer(Member& sender, InMessage message) {
  const WireHeader& header = message.header;
  PendingCall* call = calls_.Find(header.request_id);
  // Too late, or for an earlier life of this process; or a second answer while the first arrives.
  if (call == nullptr || call->receive != 0) return;
  if (header.status != 0) {
    ++sender.status.failures;
    calls_.End(call->id, Status(static_cast<StatusCode>(header.status), std::move(message.body)));
    return;
  }
  if (header.body_before) {
    if (!call->early_body.has_value()) {
      if (call->early_answer.has_value()) return;
      message.payload->Retain();
      call->early_answer = std::move(message);
      return;
    }
    message.body = std::move(*call->early_body);
  }
  if (header.payload_size == 0) {
    Answer answer;
    answer.body = std::move(message.body);
    answer.from = sender.peer.id;
    calls_.End(call->id, std::move(answer));
    return;
  }
  ReceivePayload(sender, *call, std::move(message));
}

void Messenger::ReceivePayload(Member& sender, PendingCall& call, InMessage message) {
  const uint64_t size = message.header.payload_size;
  const uint64_t id = call.id;
  if (call.target == nullptr) {
    calls_.End(id, errors::Invalid("{} sent {} bytes that the call has no place for",
                                   sender.peer.id.address, size));
    return;
  }
  Result<Places> places = call.target->Prepare(message.body, size);
  if (!places.ok()) {
    calls_.End(id, places.status());
    return;
  }
  if (!CutTo(size, *places)) {
    calls_.End(id, errors::OutOfRange("too little room for a payload of {} bytes", size));
    return;
  }
  carrier_.Connect(sender.peer);  // else we could neither notice its death nor cut the transfer
  if (calls_.Find(id) == nullptr) return;
  call.waiting_on = sender.peer.id.incarnation;
  const uint64_t transfer = next_transfer_++;
  call.receive = transfer;
  transfers_[transfer] = {sender.peer.id.incarnation, std::nullopt};
  // The target lives in this closure until nothing can land in it any more.
  auto done = [this, id, transfer, from = sender.peer.id, size, body = std::move(message.body),
               target = call.target](Status status) mutable {
    transfers_.erase(transfer);
    if (Member* member = Find(from.incarnation); member != nullptr && status.IsOk()) {
      member->status.payload_bytes_received += size;
    }
    if (status.IsError()) {
      calls_.End(id, std::move(status));
      return;
    }
    Answer answer;
    answer.body = std::move(body);
    answer.payload_size = size;
    answer.from = std::move(from);
    calls_.End(id, std::move(answer));
  };
  message.payload->Receive(*std::move(places), std::move(done));
}

void Messenger::OnMoved(const WireHeader& header) {
  PendingCall* call = calls_.Find(header.request_id);
  if (call == nullptr || call->receive != 0) return;
  if (call->early_moves.size() >= kEarlyMovesMax) return;
  call->early_moves.emplace_back(header.sender, header.subject);
  // Notices of different peers overtake each other: follow the chain from whom we wait on as far as it
  // is known. Each step uses up one notice, so it ends.
  uint64_t now_with = call->waiting_on;
  for (bool moved = true; moved;) {
    auto next = std::find_if(call->early_moves.begin(), call->early_moves.end(),
                             [now_with](const auto& move) { return move.first == now_with; });
    moved = next != call->early_moves.end();
    if (moved) {
      now_with = next->second;
      call->early_moves.erase(next);
    }
  }
  if (now_with != call->waiting_on) WaitOn(*call, now_with);
}

void Messenger::WaitOn(PendingCall& call, uint64_t incarnation) {
  call.waiting_on = incarnation;
  if (Member* member = Find(incarnation)) {
    carrier_.Connect(member->peer);  // else we would not notice its death
  } else if (HasLeft(incarnation)) {
    calls_.End(call.id, errors::PeerDead("the peer that should have answered has left the cluster"));
  } else {
    awaited_.try_emplace(incarnation, clock_.Now() + kParkedFor);
  }
}

void Messenger::LinkFailed(uint64_t incarnation, bool connected, const Status& why) {
  Member* member = Find(incarnation);
  if (member == nullptr) return;
  ++member->status.failures;
  const std::string& address = member->peer.id.address;
  calls_.EndAllOn(incarnation,
                  connected ? errors::PeerDead("lost the connection to {}: {}", address, why.GetMsg())
                            : errors::Unavailable("cannot connect to {}: {}", address, why.GetMsg()));
}

size_t Messenger::RunReady() {
  size_t ran = calls_.RunReady();
  for (size_t left = inbox_.size(); left > 0; --left, ++ran) {
    Request request = std::move(inbox_.front());
    inbox_.pop_front();
    if (handler_) {
      handler_(std::move(request));
    } else {
      Respond(request.from, errors::NotReady("{} does not answer requests yet", self_.address), "", {});
    }
  }
  return ran;
}

void Messenger::Expire() {
  const TimePoint now = clock_.Now();
  for (uint64_t id : calls_.DueAt(now)) {
    PendingCall* call = calls_.Find(id);
    std::string who = "the peer";
    if (Member* member = Find(call->waiting_on)) {
      ++member->status.failures;
      who = member->peer.id.address;
    }
    if (auto transfer = transfers_.find(call->receive); transfer != transfers_.end()) {
      transfer->second.cut_at = now + kOverdueTransferGrace;
    }
    calls_.End(id, errors::DeadlineExceeded("no answer from {} in time", who));
  }
  while (!parked_.empty() && parked_.front().until <= now) {
    parked_bytes_ -= parked_.front().bytes;
    parked_.pop_front();
  }
  for (auto it = awaited_.begin(); it != awaited_.end();) {
    if (it->second > now) {
      ++it;
      continue;
    }
    calls_.EndAllOn(it->first, errors::PeerDead("the peer that should answer is no member"));
    it = awaited_.erase(it);
  }
  std::unordered_set<uint64_t> stuck;
  for (auto& [id, transfer] : transfers_) {
    if (!transfer.cut_at.has_value() || *transfer.cut_at > now) continue;
    stuck.insert(transfer.from);
    transfer.cut_at.reset();
  }
  for (uint64_t incarnation : stuck) {
    if (Member* member = Find(incarnation)) CutOff(*member);
  }
}

void Messenger::CutOff(Member& member) {
  carrier_.Reset(member.peer, errors::DeadlineExceeded("a transfer does not end"));
  // Over tcp the sender's half is a connection of its own. Unless told, it holds what it was sending, and
  // the queue behind that, until UCX's keepalive finds out 20 s later.
  OutMessage cut;
  cut.header.kind = MessageKind::kCut;
  cut.header.sender = self_.incarnation;
  cut.header.receiver = member.peer.id.incarnation;
  carrier_.Send(member.peer, std::move(cut));
}

std::optional<TimePoint> Messenger::next_deadline() const {
  std::optional<TimePoint> next = calls_.next_deadline();
  auto take = [&next](TimePoint time) { next = next.has_value() ? std::min(*next, time) : time; };
  if (!parked_.empty()) take(parked_.front().until);
  for (const auto& [incarnation, until] : awaited_) take(until);
  for (const auto& [id, transfer] : transfers_) {
    if (transfer.cut_at.has_value()) take(*transfer.cut_at);
  }
  return next;
}

std::vector<std::unique_ptr<Waiter>> Messenger::Stop(const Status& why) {
  calls_.EndAll(why);
  parked_.clear();
  parked_bytes_ = 0;
  inbox_.clear();
  return calls_.TakeReady();
}

std::vector<PeerStatus> Messenger::peers() const {
  std::vector<PeerStatus> all;
  for (const auto& [incarnation, member] : members_) {
    all.push_back(member.status);
    all.back().lane = carrier_.Lane(member.peer);
  }
  std::sort(all.begin(), all.end(),
            [](const PeerStatus& a, const PeerStatus& b) { return a.id.address < b.id.address; });
  return all;
}

}  // namespace datasystem::transport
