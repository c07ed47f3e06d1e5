#include "transport/pending_calls.h"

#include <algorithm>

namespace datasystem::transport {
std::shared_ptr<PendingCall> PendingCalls::Add(uint64_t waiting_on, TimePoint deadline,
                                               std::shared_ptr<PayloadTarget> target) {
  auto call = std::make_shared<PendingCall>();
  call->id = next_id_++;
  call->waiting_on = waiting_on;
  call->deadline = deadline;
  call->target = std::move(target);
  calls_.emplace(call->id, call);
  deadlines_.emplace(deadline, call->id);
  return call;
}

asio::awaitable<Result<Answer>> PendingCalls::Wait(std::shared_ptr<PendingCall> call) {
  if (!call->result.has_value()) co_await WaitIn(call->waiter);
  co_return std::move(*call->result);
}

PendingCall* PendingCalls::Find(uint64_t id) const {
  auto found = calls_.find(id);
  return found == calls_.end() ? nullptr : found->second.get();
}

void PendingCalls::End(uint64_t id, Result<Answer> result) {
  auto found = calls_.find(id);
  if (found == calls_.end()) return;
  const std::shared_ptr<PendingCall> call = std::move(found->second);
  calls_.erase(found);
  deadlines_.erase({call->deadline, id});
  call->result.emplace(std::move(result));
  call->target.reset();
  call->early_answer.reset();
  // Without a waiter the call ends before it was waited for; Wait() finds the result.
  if (call->waiter != nullptr) ready_.push_back(std::move(call->waiter));
}

void PendingCalls::EndAllOn(uint64_t incarnation, const Status& why) {
  std::vector<uint64_t> ids;
  for (const auto& [id, call] : calls_) {
    if (call->waiting_on == incarnation) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());  // the order of waking must not hang on a hash table
  for (uint64_t id : ids) End(id, why);
}

void PendingCalls::EndAll(const Status& why) {
  while (!calls_.empty()) End(calls_.begin()->first, why);
}

std::vector<uint64_t> PendingCalls::DueAt(TimePoint now) const {
  std::vector<uint64_t> ids;
  for (auto it = deadlines_.begin(); it != deadlines_.end() && it->first <= now; ++it) {
    ids.push_back(it->second);
  }
  return ids;
}

std::optional<TimePoint> PendingCalls::next_deadline() const {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

size_t PendingCalls::RunReady() {
  size_t ran = 0;
  // Resumed coroutines end further calls; those wait for the next round, so that the loop gets its turn.
  for (auto& waiter : TakeReady()) {
    waiter->Resume();
    ++ran;
  }
  return ran;
}

std::vector<std::unique_ptr<Waiter>> PendingCalls::TakeReady() { return std::exchange(ready_, {}); }

}  // namespace datasystem::transport
