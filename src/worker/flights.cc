#include "worker/flights.h"

#include <algorithm>

namespace datasystem::worker {

asio::awaitable<bool> Flights::Flight::WaitForEnd(TimePoint deadline) {
  if (!over_) co_await ended_.Wait(deadline);
  co_return over_;
}

std::optional<Flights::Outcome> Flights::Flight::OutcomeFor(uint64_t arrived, TimePoint wait_until,
                                                            TimePoint now) const {
  if (!outcome_) return std::nullopt;
  if (began_ < arrived) return std::nullopt;
  if (outcome_->ok()) {
    return outcome_->value()->meta().expires_at > now ? outcome_ : std::nullopt;
  }
  switch (outcome_->status().GetCode()) {
    case K_TRY_AGAIN:
    case K_RPC_DEADLINE_EXCEEDED:
      return std::nullopt;  // its time was up, not that of others
    case K_NOT_FOUND:
      return wait_until <= now ? outcome_ : std::nullopt;
    default:
      return outcome_;
  }
}

std::shared_ptr<Flights::Flight> Flights::Find(const std::string& key, TimePoint wait_until,
                                               TimePoint now) const {
  const auto found = latest_.find(key);
  if (found == latest_.end() || found->second->wait_until_ > std::max(wait_until, now))
    return nullptr;
  return found->second;
}

// One that others would not wait for may be under way already: this one waits less, and takes its
// place.
Flights::Lead::Lead(Flights& flights, std::string key, TimePoint wait_until)
    : flights_(flights),
      key_(std::move(key)),
      flight_(new Flight(flights.context_, ++flights.sequence_, wait_until)) {
  flights_.latest_[key_] = flight_;
}

Flights::Lead::~Lead() {
  flight_->over_ = true;
  flight_->ended_.NotifyAll();
  const auto found = flights_.latest_.find(key_);
  if (found != flights_.latest_.end() && found->second == flight_) flights_.latest_.erase(found);
}

}  // namespace datasystem::worker
