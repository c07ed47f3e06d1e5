#include "worker/retry.h"

namespace datasystem::worker {
namespace {

constexpr auto kFirstPause = std::chrono::milliseconds(1);
constexpr auto kLongestPause = std::chrono::milliseconds(50);
// A worker that stops leaves the cluster before it closes its connections, so the view without it
// is at most moments away. One that crashed stays a member until its lease ends: the caller is told
// instead.
constexpr auto kNewsOfLeaving = std::chrono::milliseconds(100);

}  // namespace

asio::awaitable<Status> BeforeRetry(const Node& node, Status reason, uint64_t epoch, int attempt,
                                    TimePoint deadline) {
  const bool unreachable =
      reason.GetCode() == K_RPC_PEER_DEAD || reason.GetCode() == K_RPC_UNAVAILABLE;
  if (reason.GetCode() != K_TRY_AGAIN && !unreachable) co_return reason;
  if (node.clock.Now() >= deadline) {
    if (unreachable) co_return reason;
    co_return errors::DeadlineExceeded("gave up after {} attempts: {}", attempt + 1,
                                       reason.GetMsg());
  }
  Duration pause = kFirstPause * (1 << std::min(attempt, 6));
  pause = unreachable ? Duration(kNewsOfLeaving) : std::min<Duration>(pause, kLongestPause);
  const TimePoint until = std::min(deadline, node.clock.Now() + pause);
  if (!unreachable || node.view.epoch() == epoch) co_await node.view.WaitForChange(until);
  if (unreachable && node.view.epoch() == epoch) co_return reason;
  co_return Status::OK();
}

}  // namespace datasystem::worker
