// What the worker holds for this client until it is told otherwise: a pinned object, or cache memory of
// a buffer that is not published yet.
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

}  // namespace datasystem::client
