// What keeps an object, or the memory of a buffer that is not published yet: the worker, until it
// is told otherwise (Claim), or a pin in shared memory (LocalPin).
#pragma once

#include <memory>
#include <utility>

#include "client/session.h"

namespace datasystem::client {

// Move-only; given up on destruction. Keeps the session, and with it the mapped memory, alive.
class Claim {
 public:
  Claim() = default;
  static Claim OfPin(std::shared_ptr<Session> session, uint64_t pin_id) {
    return Claim(std::move(session), proto::SessionMessage::kRelease, pin_id);
  }
  static Claim OfBuffer(std::shared_ptr<Session> session, uint64_t buffer_id) {
    return Claim(std::move(session), proto::SessionMessage::kAbandon, buffer_id);
  }
  Claim(Claim&& other) noexcept = default;  // leaves no session behind
  Claim& operator=(Claim&& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(kind_, other.kind_);
    std::swap(id_, other.id_);
    return *this;
  }
  ~Claim() {
    if (session_ != nullptr) session_->GiveUp(kind_, id_);
  }

  bool valid() const { return session_ != nullptr; }
  uint64_t id() const { return id_; }
  const std::shared_ptr<Session>& session() const { return session_; }
  // The worker has taken it over: there is nothing left to give up.
  void Settle() { session_.reset(); }

 private:
  Claim(std::shared_ptr<Session> session, proto::SessionMessage kind, uint64_t id)
      : session_(std::move(session)), kind_(kind), id_(id) {}

  std::shared_ptr<Session> session_;
  proto::SessionMessage kind_{};
  uint64_t id_ = 0;
};

// Move-only; released on destruction. Keeps the session, and with it the mapped memory, alive.
class LocalPin {
 public:
  LocalPin() = default;
  LocalPin(std::shared_ptr<Session> session, shm::Pin pin)
      : session_(std::move(session)), pin_(std::move(pin)) {}
  LocalPin(LocalPin&&) noexcept = default;
  LocalPin& operator=(LocalPin&& other) noexcept {
    std::swap(session_, other.session_);
    std::swap(pin_, other.pin_);
    return *this;
  }
  ~LocalPin() {
    // After fork the slot is still the parent's, which may be reading: the child never releases it.
    if (pin_.valid() && !session_->OfThisProcess()) new shm::Pin(std::move(pin_));
  }

 private:
  std::shared_ptr<Session> session_;
  shm::Pin pin_;  // released before the session can end
};

}  // namespace datasystem::client
