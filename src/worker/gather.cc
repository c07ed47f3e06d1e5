#include "worker/gather.h"

#include <deque>
#include <map>

#include "base/concurrently.h"
#include "worker/allocate.h"
#include "worker/landing.h"

namespace datasystem::worker {
namespace {

using Item = proto::PeerGetManyAnswer::Item;
using Said = proto::PeerGetManyAnswer::Outcome;

// Keys in one message: with values of 4 KiB they fill an answer of 2 MiB.
constexpr size_t kKeysMax = 512;
// Messages under way at a time.
constexpr size_t kMessagesMax = 16;

}  // namespace

struct Gather::Wanted {
  Wanted(Gather& gather, size_t index, const std::string& key, TimePoint wait_until)
      : index(index),
        landing(gather.node_, gather.holder_, key, gather.keep_copies_),
        lead(std::in_place, gather.flights_, key, wait_until) {}

  const size_t index;
  const Landing landing;
  std::optional<Flights::Lead> lead;  // until its own end: others must not wait for the whole batch
  uint64_t version = 0;  // at whom is asked; 0: the shard
};

// Memory for each value of an answer, as soon as their sizes are known.
class Gather::Target final : public transport::PayloadTarget {
 public:
  Target(store::ObjectStore& store, size_t asked) : store_(store), asked_(asked) {}

  // kTryAgain: there is no room for all of them at once.
  Result<transport::Places> Prepare(std::string_view body, uint64_t size) override {
    ASSIGN_OR_RETURN(const auto answer, proto::PeerGetManyAnswer::Decode(body));
    if (answer.items.size() != asked_) {
      return errors::Invalid("{} answers to {} keys", answer.items.size(), asked_);
    }
    extents_.resize(asked_);
    transport::Places places;
    for (size_t i = 0; i < asked_; ++i) {
      const Item& item = answer.items[i];
      if (item.outcome != Said::kValue) continue;
      if (item.size == 0 || item.size > size) {
        return errors::Invalid("a value of {} bytes where {} are left", item.size, size);
      }
      size -= item.size;
      ASSIGN_OR_RETURN(extents_[i], AllocateAtOnce(store_, item.size));
      places.push_back(extents_[i].bytes());
    }
    if (size != 0) return errors::Invalid("{} bytes belong to no value", size);
    return places;
  }

  // One for each key, or none at all.
  std::vector<shm::Extent>& extents() { return extents_; }

 private:
  store::ObjectStore& store_;
  const size_t asked_;
  std::vector<shm::Extent> extents_;
};

// The keys of one Fetch(), and whom to ask for them next.
class Gather::Call {
 public:
  Call(Gather& gather, std::span<Outcome> outcomes, TimePoint wait_until, TimePoint deadline)
      : node_(gather.node_),
        gather_(gather),
        outcomes_(outcomes),
        wait_until_(wait_until),
        deadline_(deadline) {}

  void Add(size_t index, const std::string& key) {
    if (flights().Find(key, wait_until_, node_.clock.Now()) != nullptr) return;
    Wanted& wanted = wanted_.emplace_back(gather_, index, key, wait_until_);
    const transport::PeerId shard = node_.view.ShardOf(key);
    if (!node_.view.IsSelf(shard)) {
      next_[shard.incarnation].push_back(&wanted);
      return;
    }
    const auto found =
        node_.directory.LookupNow(key, shard.incarnation, wanted.landing.may_keep());
    if (!found.ok()) {
      found.status().GetCode() == K_NOT_FOUND ? Absent(wanted) : LeaveAlone(wanted);
    } else {
      AskNext(found->owner, found->version, wanted);
    }
  }

  asio::awaitable<void> Run() {
    while (!next_.empty()) {
      std::vector<std::pair<uint64_t, std::vector<Wanted*>>> messages;
      for (const auto& [peer, all] : std::exchange(next_, {})) {
        for (size_t from = 0; from < all.size(); from += kKeysMax) {
          const size_t to = std::min(all.size(), from + kKeysMax);
          messages.emplace_back(peer, std::vector(all.begin() + from, all.begin() + to));
        }
      }
      const auto ask = [&, this](size_t i) -> asio::awaitable<void> {
        co_await Ask(messages[i].first, messages[i].second);
      };
      co_await ForEachConcurrently(node_.context, messages.size(), kMessagesMax, ask);
    }
  }

 private:
  Flights& flights() { return gather_.flights_; }

  void End(Wanted& wanted, Result<store::ObjectRef> result) {
    wanted.lead->Land(result);
    wanted.lead.reset();
    outcomes_[wanted.index] = std::move(result);
  }

  void LeaveAlone(Wanted& wanted) { wanted.lead.reset(); }

  void Absent(Wanted& wanted) {
    if (node_.clock.Now() < wait_until_) return LeaveAlone(wanted);
    End(wanted, errors::NotFound("no object {}", wanted.landing.key()));
  }

  void AskNext(uint64_t owner, uint64_t version, Wanted& wanted) {
    // An owner does not know of others; and what this worker itself should have is for Get to sort out.
    if (wanted.version != 0 || version == 0 || owner == node_.view.self().incarnation) {
      return LeaveAlone(wanted);
    }
    wanted.version = version;
    next_[owner].push_back(&wanted);
  }

  // Takes its arguments from the frame of Run(), which waits.
  asio::awaitable<void> Ask(uint64_t incarnation, const std::vector<Wanted*>& group) {
    const bool answered = co_await TryAsk(incarnation, group);
    if (answered) co_return;
    for (Wanted* wanted : group) LeaveAlone(*wanted);
  }

  asio::awaitable<bool> TryAsk(uint64_t incarnation, const std::vector<Wanted*>& group) {
    const transport::PeerId peer{node_.view.AddressOf(incarnation), incarnation};
    if (peer.address.empty()) co_return false;
    proto::PeerGetMany message;
    message.epoch = node_.view.epoch();
    for (const Wanted* wanted : group) {
      message.items.push_back({wanted->landing.key(), wanted->version, wanted->landing.may_keep()});
    }
    std::string body = message.Encode();
    const auto target = std::make_shared<Target>(node_.store, group.size());
    auto answer = co_await node_.transport.Call(
        peer, static_cast<uint16_t>(proto::PeerMessage::kGetMany), std::move(body), deadline_, target);
    if (!answer.ok()) co_return false;
    const auto said = proto::PeerGetManyAnswer::Decode(answer->body);
    if (!said.ok() || said->items.size() != group.size()) co_return false;
    // Without a value there would be no end to it.
    const bool progress = answer->payload_size > 0;
    for (size_t i = 0; i < group.size(); ++i) {
      const Item& item = said->items[i];
      if (item.outcome == Said::kLater && progress) {
        next_[incarnation].push_back(group[i]);
      } else {
        Take(*group[i], item, progress ? &target->extents()[i] : nullptr);
      }
    }
    co_return true;
  }

  void Take(Wanted& wanted, const Item& item, shm::Extent* extent) {
    switch (item.outcome) {
      case Said::kValue:
        if (extent == nullptr) return LeaveAlone(wanted);
        return End(wanted, wanted.landing.Take({.version = item.version,
                                                .ttl_remaining_ms = item.ttl_remaining_ms,
                                                .listed = item.listed,
                                                .evictable = item.evictable},
                                               *extent));
      case Said::kElsewhere: return AskNext(item.owner, item.version, wanted);
      case Said::kAbsent: return Absent(wanted);
      case Said::kAlone:
      case Said::kLater: return LeaveAlone(wanted);
    }
  }

  const Node& node_;
  Gather& gather_;
  const std::span<Outcome> outcomes_;
  const TimePoint wait_until_;
  const TimePoint deadline_;
  std::deque<Wanted> wanted_;
  std::map<uint64_t, std::vector<Wanted*>> next_;  // by incarnation
};

asio::awaitable<void> Gather::Fetch(std::span<const std::string> keys, std::span<Outcome> outcomes,
                                    TimePoint wait_until, TimePoint deadline) {
  Call call(*this, outcomes, wait_until, deadline);
  for (size_t i = 0; i < keys.size(); ++i) call.Add(i, keys[i]);
  co_await call.Run();
}

}  // namespace datasystem::worker
