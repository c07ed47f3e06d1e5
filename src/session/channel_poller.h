// Looks for requests in the rings of all connections that have one.
//
// While the loop is awake that costs a look at a cache line a connection; before it sleeps, the clients are told
// that they must wake it, by a byte through the socket.
// Ownership: knows the connections, does not own them. Threads: the event loop's.
#pragma once

#include <memory>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace datasystem::session {

class ServerConnection;

class ChannelPoller final : public Poller {
 public:
  // kRuntimeError: the system has no descriptor for it.
  static Result<std::unique_ptr<ChannelPoller>> Create();
  // The connections leave their channels.
  ~ChannelPoller() override;

  void Add(ServerConnection* connection) { connections_.push_back(connection); }
  void Remove(ServerConnection* connection) { std::erase(connections_, connection); }

  // A client has woken the loop: it does not know any more that it must.
  void NoteWoken() { woken_ = true; }

  size_t Poll() override;
  bool HasWork() const override;
  bool PrepareToSleep() override;
  bool Busy() const override { return woken_ || HasWork(); }
  int event_fd() const override { return never_.get(); }

 private:
  explicit ChannelPoller(UniqueFd never) : never_(std::move(never)) {}

  const UniqueFd never_;  // nothing wakes the loop by it: the sockets do
  std::vector<ServerConnection*> connections_;
  bool told_asleep_ = false;
  bool woken_ = false;
};

}  // namespace datasystem::session
