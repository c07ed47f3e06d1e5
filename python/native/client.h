// The SDK's client as Python's KVClient holds it: calls give up the GIL, and closing waits for them.
#pragma once

#include <unistd.h>

#include <memory>
#include <mutex>
#include <shared_mutex>

#include "datasystem/kv_client.h"
#include "gil.h"

namespace datasystem::python {

// Python threads may close a client that others use; the SDK forbids that. So calls share `mutex_` and
// Close() waits for them. No call waits for the mutex: in a forked child it may be locked for ever.
class Client {
 public:
  explicit Client(const ConnectOptions& options) : sdk_(std::make_unique<KVClient>(options)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    GilRelease without_gil;
    sdk_.reset();
  }

  // For what needs no protection from Close(): Call(), and reads of the index.
  KVClient& sdk() { return *sdk_; }

  // Runs `function` without the GIL, unless the client is being closed.
  template <typename Function>
  Status Call(Function function) {
    GilRelease without_gil;
    std::shared_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return Status(K_NOT_READY, "the client is being closed by another thread");
    return function();
  }

  Status Close() {
    GilRelease without_gil;
    std::unique_lock lock(mutex_, std::defer_lock);
    if (::getpid() == process_) lock.lock();
    return sdk_->ShutDown();
  }

 private:
  const pid_t process_ = ::getpid();
  std::shared_mutex mutex_;
  std::unique_ptr<KVClient> sdk_;
};

}  // namespace datasystem::python
