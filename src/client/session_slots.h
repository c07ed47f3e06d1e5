// The session of a client, cheap to get at for many threads at once.
//
// One counter and one lock that all threads change would cost more than the whole read that
// follows. So there are several pointers, each with a counter of its own, and a thread keeps to one
// of them.
//
// Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>

#include "client/session.h"

namespace datasystem::client {

class SessionSlots {
 public:
  // Null: there is none.
  std::shared_ptr<Session> Get() {
    Slot& slot = slots_[ThreadNumber() % slots_.size()];
    std::lock_guard lock(slot.mutex);
    return slot.session;
  }

  void Set(const std::shared_ptr<Session>& session) {
    for (Slot& slot : slots_) {
      // Its deleter owns a share of the session: a counter for this slot alone.
      std::shared_ptr<Session> share;
      if (session != nullptr) share = {session.get(), [session](Session*) {}};
      std::lock_guard lock(slot.mutex);
      slot.session.swap(share);
    }
  }

 private:
  struct alignas(64) Slot {
    std::mutex mutex;
    std::shared_ptr<Session> session;
  };

  static uint32_t ThreadNumber() {
    static std::atomic<uint32_t> next{0};
    thread_local const uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
    return number;
  }

  std::array<Slot, 8> slots_;
};

}  // namespace datasystem::client
