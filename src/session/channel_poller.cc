#include "session/channel_poller.h"

#include <sys/eventfd.h>

#include <algorithm>

#include "base/errors.h"
#include "session/server_connection.h"

namespace datasystem::session {

Result<std::unique_ptr<ChannelPoller>> ChannelPoller::Create() {
  UniqueFd never(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!never.valid()) return errors::FromErrno(errno, "making an event descriptor");
  return std::unique_ptr<ChannelPoller>(new ChannelPoller(std::move(never)));
}

ChannelPoller::~ChannelPoller() {
  while (!connections_.empty()) connections_.back()->LeaveChannel();
}

size_t ChannelPoller::Poll() {
  woken_ = false;
  if (std::exchange(told_asleep_, false)) {
    for (ServerConnection* connection : connections_) connection->channel_in().SayAwake();
  }
  size_t resumed = 0;
  // A request may end its own connection, and others.
  for (size_t i = 0; i < connections_.size(); ++i) {
    if (connections_[i]->channel_in().HasBytes() && connections_[i]->Resume()) ++resumed;
  }
  return resumed;
}

bool ChannelPoller::HasWork() const {
  return std::ranges::any_of(connections_, [](ServerConnection* connection) {
    return connection->channel_in().HasBytes() && connection->waiting();
  });
}

bool ChannelPoller::PrepareToSleep() {
  told_asleep_ = true;
  for (ServerConnection* connection : connections_) connection->channel_in().SayAsleep();
  return !HasWork();
}

}  // namespace datasystem::session
