#include "worker/pending_keys.h"

#include <algorithm>

namespace datasystem::worker {

PendingKeys::Operation::Operation(PendingKeys& pending, std::string key, Kind kind)
    : pending_(pending), key_(std::move(key)), kind_(kind) {
  auto& slot = pending_.slots_[key_];
  if (!slot) slot = std::make_shared<Slot>(pending_.context_);
  slot->operations.push_back(this);
}

PendingKeys::Operation::~Operation() {
  const auto found = pending_.slots_.find(key_);
  found->second->operations.remove(this);
  found->second->ended.NotifyAll();  // who waits holds the slot
  if (found->second->operations.empty()) pending_.slots_.erase(found);
}

void PendingKeys::Invalidate(std::string_view key, uint64_t version) {
  const auto found = slots_.find(key);
  if (found == slots_.end()) return;
  for (Operation* operation : found->second->operations) {
    operation->invalidated_up_to_ = std::max(operation->invalidated_up_to_, version);
  }
}

bool PendingKeys::HasUpdate(std::string_view key) const {
  const auto found = slots_.find(key);
  return found != slots_.end() &&
         std::any_of(found->second->operations.begin(), found->second->operations.end(),
                     [](const Operation* operation) { return operation->kind_ == Kind::kUpdate; });
}

asio::awaitable<void> PendingKeys::WaitForEnd(std::string key, TimePoint deadline) {
  const auto found = slots_.find(key);
  if (found == slots_.end()) co_return;
  const std::shared_ptr<Slot> slot = found->second;
  co_await slot->ended.Wait(deadline);
}

}  // namespace datasystem::worker
