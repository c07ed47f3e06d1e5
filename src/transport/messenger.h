// Calls, answers, forwarding and membership over a Carrier that only moves messages.
//
// Every message names the incarnations of its sender and receiver. A message for another incarnation
// than ours is answered with kTryAgain; one from a sender that SetPeers() has not announced yet is
// parked for a moment, because joins reach the members at different times.
//
// Memory that peers can occupy here is bounded: kParked*, and one body of kBodyMax a message.
// Threads: all on the event loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "transport/carrier.h"
#include "transport/pending_calls.h"
#include "transport/transport.h"

namespace datasystem::transport {

class Messenger {
 public:
  static constexpr size_t kParkedMessagesMax = 1024;
  static constexpr size_t kParkedBytesMax = 32 << 20;
  // A join reaches every member within a watch event's time; more is a lost member.
  static constexpr Duration kParkedFor = std::chrono::seconds(2);
  // How long a payload transfer may go on after its call has ended, before the connection is cut.
  static constexpr Duration kOverdueTransferGrace = std::chrono::milliseconds(500);

  // Request ids count from `first_request_id`; random, so that late answers to an earlier life of this
  // address hit nothing, but for tests that must repeat.
  Messenger(PeerId self, Carrier& carrier, const Clock& clock, uint64_t first_request_id);
  ~Messenger();

  // The interface of Transport; see there.
  void SetPeers(std::vector<Peer> peers);
  void SetRequestHandler(Transport::RequestHandler handler) { handler_ = std::move(handler); }
  asio::awaitable<Result<Answer>> Call(PeerId to, uint16_t type, std::string body, TimePoint deadline,
                                       std::shared_ptr<PayloadTarget> target);
  void Respond(const ReturnAddress& to, const Status& status, std::string body, Payload payload);
  void Forward(const ReturnAddress& caller, const PeerId& to, uint16_t type, std::string body);
  std::vector<PeerStatus> peers() const;

  // From the carrier. The header has passed Decode(), or was never on a wire.
  void Deliver(InMessage message);
  // The connection is gone. `connected`: it had been established before.
  void LinkFailed(uint64_t incarnation, bool connected, const Status& why);
  // This message will not arrive.
  void SendFailed(const OutMessage& message, const Status& why);

  // Handles requests and resumes callers; returns how many.
  size_t RunReady();
  bool has_ready() const { return calls_.has_ready() || !inbox_.empty(); }
  // Ends what is due. To be called at next_deadline().
  void Expire();
  std::optional<TimePoint> next_deadline() const;
  // Ends all calls; the callers' coroutines are resumed by the returned waiters.
  std::vector<std::unique_ptr<Waiter>> Stop(const Status& why);

 private:
  struct Member {
    Peer peer;
    PeerStatus status;
  };
  struct Parked {
    InMessage message;
    size_t bytes;
    TimePoint until;
  };
  struct Transfer {
    uint64_t from;
    std::optional<TimePoint> cut_at;
  };

  Member* Find(uint64_t incarnation);
  Member* Find(const PeerId& id);
  bool HasLeft(uint64_t incarnation) const;
  void Leave(uint64_t incarnation, const Status& why);
  void Park(InMessage message);
  void Unpark();
  void RefuseWrongReceiver(const WireHeader& header);
  void Dispatch(Member& sender, InMessage message);
  void OnRequest(const PeerId& caller, InMessage message);
  void OnAnswer(Member& sender, InMessage message);
  void OnMoved(const WireHeader& header);
  void WaitOn(PendingCall& call, uint64_t incarnation);
  // For a peer whose transfer to us does not end.
  void CutOff(Member& member);
  void ReceivePayload(Member& sender, PendingCall& call, InMessage message);
  void SendAnswer(Member& to, uint64_t request_id, const Status& status, std::string body,
                  Payload payload);
  Status WhyUnreachable(const PeerId& to) const;

  const PeerId self_;
  Carrier& carrier_;
  const Clock& clock_;
  Transport::RequestHandler handler_;
  std::map<uint64_t, Member> members_;  // in order, so that tests repeat
  std::deque<uint64_t> left_;  // the latest incarnations that have left
  PendingCalls calls_;
  // Incarnations that calls wait on before SetPeers() has announced them, and until when.
  std::map<uint64_t, TimePoint> awaited_;
  std::list<Parked> parked_;
  size_t parked_bytes_ = 0;
  std::map<uint64_t, Transfer> transfers_;
  uint64_t next_transfer_ = 1;
  std::deque<Request> inbox_;
};

}  // namespace datasystem::transport
