#include "client/lease_book.h"

#include <algorithm>
#include <bit>

namespace datasystem::client {
namespace {

constexpr std::chrono::seconds kSoon{1};

}  // namespace

uint64_t LeaseBook::ClassOf(uint64_t size) {
  const uint64_t step = std::max<uint64_t>(std::bit_floor(size) / 8, 1);
  return (size + step - 1) / step * step;
}

std::optional<proto::Lease> LeaseBook::Take(uint64_t size) {
  const uint64_t wanted = ClassOf(size);
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(
      held_, wanted, [](const proto::Lease& lease) { return lease.location.size; });
  if (found == held_.end()) return std::nullopt;
  const proto::Lease lease = *found;
  held_.erase(found);
  return lease;
}

uint64_t LeaseBook::Wish(uint64_t size, TimePoint now) {
  const uint64_t wanted = ClassOf(size);
  std::lock_guard lock(mutex_);
  const bool again = wanted == last_class_ && now - last_set_ <= kSoon;
  last_class_ = wanted;
  last_set_ = now;
  return again && held_.size() < kHeldMax ? wanted : 0;
}

void LeaseBook::Add(const proto::Lease& lease) {
  std::lock_guard lock(mutex_);
  if (held_.size() == kHeldMax)
    held_.erase(held_.begin());  // the oldest, which the worker takes back
  held_.push_back(lease);
}

}  // namespace datasystem::client
