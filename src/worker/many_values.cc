#include "worker/many_values.h"

#include "session/key_rules.h"

namespace datasystem::worker {
namespace {

using Outcome = proto::PeerGetManyAnswer::Outcome;

class Collector {
 public:
  Collector(const Node& node, uint64_t reader, const ManyLimits& limits)
      : node_(node), reader_(reader), limits_(limits) {}

  proto::PeerGetManyAnswer::Item Take(const proto::PeerGetMany::Item& wanted) {
    proto::PeerGetManyAnswer::Item item;
    uint64_t version = wanted.version;
    if (version == 0) {
      if (session::CheckKey(wanted.key).IsError()) return item;
      const auto found = node_.directory.LookupNow(wanted.key, reader_, wanted.keep_copy);
      if (!found.ok()) {
        if (found.status().GetCode() == K_NOT_FOUND) item.outcome = Outcome::kAbsent;
        return item;
      }
      if (found->owner == reader_) return item;
      version = found->version;
      if (found->owner != node_.view.self().incarnation) {
        item.outcome = Outcome::kElsewhere;
        item.owner = found->owner;
        item.version = version;
        return item;
      }
    }
    AddValue(wanted, version, item);
    return item;
  }

  transport::Payload TakePayload() {
    payload_.owner = std::make_shared<std::vector<store::ObjectRef>>(std::move(objects_));
    return std::move(payload_);
  }

 private:
  void AddValue(const proto::PeerGetMany::Item& wanted, uint64_t version,
                proto::PeerGetManyAnswer::Item& item) {
    store::ObjectRef object = node_.store.Find(wanted.key);
    if (!object || object->meta().version < version || object->size() > limits_.value_max) return;
    if (bytes_ > 0 && bytes_ + object->size() > limits_.answer_max) {
      item.outcome = Outcome::kLater;
      return;
    }
    const store::ObjectMeta meta = object->meta();
    item.outcome = Outcome::kValue;
    item.version = meta.version;
    item.ttl_remaining_ms = TtlMs(node_.clock, meta.expires_at);
    item.listed = wanted.keep_copy && meta.version == version;
    item.evictable = meta.evictable;
    item.size = object->size();
    bytes_ += item.size;
    payload_.parts.push_back(object.bytes());
    objects_.push_back(std::move(object));
  }

  const Node& node_;
  const uint64_t reader_;
  const ManyLimits& limits_;
  uint64_t bytes_ = 0;
  transport::Payload payload_;
  std::vector<store::ObjectRef> objects_;  // pinned until all has left
};

}  // namespace

void AnswerGetMany(const Node& node, const transport::ReturnAddress& from,
                   const proto::PeerGetMany& request, const ManyLimits& limits) {
  Collector collector(node, from.caller.incarnation, limits);
  proto::PeerGetManyAnswer answer;
  answer.items.reserve(request.items.size());
  for (const auto& wanted : request.items) answer.items.push_back(collector.Take(wanted));
  node.transport.Respond(from, Status::OK(), answer.Encode(), collector.TakePayload());
}

}  // namespace datasystem::worker
