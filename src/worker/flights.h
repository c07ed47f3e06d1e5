// Fetches under way, which later gets of the same key can wait for: a hundred readers on this node
// cost one transfer.
//
// A get that finds one under way waits for its end and looks into the store again: what may be kept
// is there. What may not could be out of date for a get that began later than the fetch; only gets
// that began before it are given it directly. So where copies are not kept, a crowd costs two
// transfers: one for the first, one for all others.
//
// Threads: the event loop's.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "base/result.h"
#include "base/wait_list.h"
#include "store/object_store.h"

namespace datasystem::worker {

class Flights {
 public:
  using Outcome = Result<store::ObjectRef>;

  class Flight {
   public:
    // Until the fetch has ended (true), or the deadline.
    asio::awaitable<bool> WaitForEnd(TimePoint deadline);
    // What a get may take as its own result; none: it must look for itself. `arrived` is from
    // Arrive(), `wait_until` the time until which it waits for a key that does not exist.
    std::optional<Outcome> OutcomeFor(uint64_t arrived, TimePoint wait_until, TimePoint now) const;

   private:
    friend class Flights;
    Flight(asio::io_context& context, uint64_t began, TimePoint wait_until)
        : began_(began), wait_until_(wait_until), ended_(context) {}

    const uint64_t began_;
    const TimePoint wait_until_;
    bool over_ = false;
    std::optional<Outcome> outcome_;
    WaitList ended_;
  };

  // The fetch of the one who makes it; ends with this object.
  class Lead {
   public:
    Lead(Flights& flights, std::string key, TimePoint wait_until);
    Lead(const Lead&) = delete;
    ~Lead();
    void Land(const Outcome& outcome) { flight_->outcome_ = outcome; }

   private:
    Flights& flights_;
    const std::string key_;
    const std::shared_ptr<Flight> flight_;
  };

  explicit Flights(asio::io_context& context) : context_(context) {}

  // A get begins.
  uint64_t Arrive() { return ++sequence_; }
  // One worth waiting for: it does not wait longer than `wait_until` for the key to exist. Null if
  // there is none.
  std::shared_ptr<Flight> Find(const std::string& key, TimePoint wait_until, TimePoint now) const;

 private:
  asio::io_context& context_;
  uint64_t sequence_ = 0;  // orders gets and flights
  std::unordered_map<std::string, std::shared_ptr<Flight>> latest_;
};

}  // namespace datasystem::worker
