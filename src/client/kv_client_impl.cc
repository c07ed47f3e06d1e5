#include "client/kv_client_impl.h"

#include <thread>

#include "client/process.h"

namespace datasystem {

using client::Deadline;
using client::Session;
using std::chrono::milliseconds;

namespace {

// How long a call waits for a worker that is gone, if its own time-out is not shorter.
constexpr std::chrono::seconds kReopenTimeout{10};
constexpr milliseconds kPauseMin{10};
constexpr milliseconds kPauseMax{500};

// Of a worker that is being started again.
bool MayPass(StatusCode code) {
  return code == K_RPC_UNAVAILABLE || code == K_CLIENT_WORKER_DISCONNECT || code == K_NOT_READY ||
         code == K_SHUTTING_DOWN;
}

}  // namespace

Status KVClient::Impl::CheckProcess() const {
  const pid_t owner = process_id.load(std::memory_order_relaxed);
  if (owner == 0 || owner == client::ThisProcess()) return Status::OK();
  return errors::Runtime("this client was created in process {}; create a new KVClient after fork",
                         owner);
}

Result<std::shared_ptr<Session>> KVClient::Impl::Local() {
  RETURN_IF_ERROR(CheckProcess());
  auto session = current.Get();
  if (session == nullptr) return errors::NotReady("the client is not connected: call Init() first");
  return session;
}

Result<KVClient::Impl::Context> KVClient::Impl::Remote(milliseconds extra_time) {
  ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Local());
  const Deadline deadline(settings.request_timeout + extra_time);
  if (!session->Alive()) {
    ASSIGN_OR_RETURN(session, Reopen(deadline));
  }
  return Context{std::move(session), deadline};
}

Result<std::shared_ptr<Session>> KVClient::Impl::Reopen(const Deadline& deadline) {
  const TimePoint until = std::min(deadline.at(), Clock::Steady().Now() + kReopenTimeout);
  std::unique_lock lock(mutex);
  if (!reopened.wait_until(lock, until, [this] { return !reopening; })) {
    return errors::Unavailable(
        "worker {} has gone, and another call that tries to connect again is not done yet",
        settings.worker.ToString());
  }
  ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Local());
  if (session->Alive()) return session;
  reopening = true;
  lock.unlock();
  auto opened = OpenUntil(until);
  lock.lock();
  if (opened.ok()) {
    current.Set(*opened);
    opened = Local();
  }
  reopening = false;
  lock.unlock();
  reopened.notify_all();
  return opened;
}

Result<std::shared_ptr<Session>> KVClient::Impl::OpenUntil(TimePoint until) {
  for (milliseconds pause = kPauseMin;; pause = std::min(2 * pause, kPauseMax)) {
    const auto left = std::chrono::ceil<milliseconds>(until - Clock::Steady().Now());
    auto opened = Session::Open(settings.worker, Deadline(std::max(left, milliseconds(1))));
    if (opened.ok() || !MayPass(opened.status().GetCode()) ||
        Clock::Steady().Now() + pause >= until)
      return opened;
    std::this_thread::sleep_for(pause);
  }
}

namespace client {
namespace {

constexpr size_t kShownMax = 100;

// Printable and short, whatever the key is.
std::string Shown(std::string_view key) {
  std::string shown;
  for (const char c : key.substr(0, kShownMax)) {
    const auto byte = static_cast<unsigned char>(c);
    shown += byte >= 0x20 && byte < 0x7F ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return key.size() > kShownMax ? shown + "..." : shown;
}

}  // namespace

Status CheckKeyOf(const std::vector<std::string>& keys, size_t index) {
  const Status status = session::CheckKey(keys[index]);
  if (status.IsOk() || keys.size() == 1) return status;
  return errors::Invalid("key '{}', number {} of {}: {}", Shown(keys[index]), index + 1,
                         keys.size(), status.GetMsg());
}

Result<std::vector<Status>> CheckKeys(const std::vector<std::string>& keys) {
  if (keys.empty()) return session::CheckBatchSize(0);
  std::vector<Status> outcomes(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) outcomes[i] = CheckKeyOf(keys, i);
  return outcomes;
}

Status AnySucceeded(const std::vector<Status>& outcomes) {
  for (const Status& outcome : outcomes) {
    if (outcome.IsOk()) return outcome;
  }
  return outcomes.front();
}

Status AnyObtained(const std::vector<Status>& outcomes) {
  const Status status = AnySucceeded(outcomes);
  if (status.GetCode() == K_NOT_FOUND) return errors::NotFound("Cannot get objects from worker");
  return status;
}

std::vector<std::string> FailedOf(const std::vector<std::string>& keys,
                                  const std::vector<Status>& outcomes) {
  std::vector<std::string> failed;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i].IsError()) failed.push_back(keys[i]);
  }
  return failed;
}

std::vector<size_t> LegalOf(const std::vector<Status>& outcomes) {
  std::vector<size_t> legal;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (outcomes[i].IsOk()) legal.push_back(i);
  }
  return legal;
}

}  // namespace client
}  // namespace datasystem
