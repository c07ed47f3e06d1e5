// Calls that wait for their answer: found by request id, ended by answer, failure or deadline.
//
// A call that has ended resumes its coroutine later, from RunReady(), never inside the callback that
// ended it.
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/waiter.h"
#include "transport/carrier.h"
#include "transport/transport.h"

namespace datasystem::transport {

struct PendingCall {
  uint64_t id = 0;
  uint64_t waiting_on = 0;  // incarnation of who should answer now
  TimePoint deadline;
  std::shared_ptr<PayloadTarget> target;

  // Notices of moves by peers that we do not know to have got the request yet: (from, to).
  std::vector<std::pair<uint64_t, uint64_t>> early_moves;
  std::optional<std::string> early_body;   // a kAnswerBody came
  std::optional<InMessage> early_answer;   // an answer whose body has not come
  uint64_t receive = 0;                    // the payload transfer under way; 0 = none

  std::optional<Result<Answer>> result;
  std::unique_ptr<Waiter> waiter;
};

class PendingCalls {
 public:
  explicit PendingCalls(uint64_t first_id) : next_id_(first_id) {}

  std::shared_ptr<PendingCall> Add(uint64_t waiting_on, TimePoint deadline,
                                   std::shared_ptr<PayloadTarget> target);
  // Suspends until the call has ended.
  static asio::awaitable<Result<Answer>> Wait(std::shared_ptr<PendingCall> call);

  // Null when it has ended or never was.
  PendingCall* Find(uint64_t id) const;
  void End(uint64_t id, Result<Answer> result);
  // Ends those that wait on a peer.
  void EndAllOn(uint64_t incarnation, const Status& why);
  void EndAll(const Status& why);
  // Ids of those whose deadline has passed.
  std::vector<uint64_t> DueAt(TimePoint now) const;
  std::optional<TimePoint> next_deadline() const;

  bool has_ready() const { return !ready_.empty(); }
  size_t RunReady();
  // The waiters of ended calls, for an owner that cannot run them itself any more.
  std::vector<std::unique_ptr<Waiter>> TakeReady();

 private:
  uint64_t next_id_;
  std::unordered_map<uint64_t, std::shared_ptr<PendingCall>> calls_;
  std::set<std::pair<TimePoint, uint64_t>> deadlines_;
  std::vector<std::unique_ptr<Waiter>> ready_;
};

}  // namespace datasystem::transport
