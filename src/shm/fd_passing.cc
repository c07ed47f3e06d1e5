#include "shm/fd_passing.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iterator>

namespace datasystem::shm {
namespace {

// How long a socket in non-blocking mode is waited for; one in blocking mode has its own time-outs.
constexpr int kNonBlockingWaitMaxMs = 10'000;

// CMSG_* need the header's alignment.
struct alignas(cmsghdr) ControlBuffer {
  std::byte bytes[CMSG_SPACE(kDescriptorsMax * sizeof(int))];
};

// After EAGAIN: OK when it is worth trying again.
Status AwaitReady(int socket, short events, std::string_view what) {
  const int flags = ::fcntl(socket, F_GETFL);
  if (flags < 0) return errors::FromErrno(errno, what);
  if ((flags & O_NONBLOCK) == 0) return errors::IoError("{}: the socket's time-out ran out", what);
  pollfd wait{.fd = socket, .events = events, .revents = 0};
  const int ready = ::poll(&wait, 1, kNonBlockingWaitMaxMs);
  if (ready < 0 && errno != EINTR) return errors::FromErrno(errno, what);
  if (ready == 0) return errors::IoError("{}: nothing for {} ms", what, kNonBlockingWaitMaxMs);
  return Status::OK();
}

// Takes ownership of every descriptor in the message, whatever else is wrong with it.
void CollectDescriptors(msghdr& message, std::vector<UniqueFd>& fds) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

Status SendWithDescriptors(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (bytes.empty()) return errors::Invalid("descriptors travel with at least one byte");
  if (fds.size() > kDescriptorsMax) {
    return errors::Invalid("{} descriptors in one message, {} at most", fds.size(), kDescriptorsMax);
  }
  ControlBuffer control{};
  size_t sent = 0;
  while (sent < bytes.size()) {
    iovec part{.iov_base = const_cast<std::byte*>(bytes.data() + sent), .iov_len = bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent == 0 && !fds.empty()) {
      message.msg_control = control.bytes;
      message.msg_controllen = CMSG_SPACE(fds.size_bytes());
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(fds.size_bytes());
      std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
    }
    const ssize_t count = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      RETURN_IF_ERROR(AwaitReady(socket, POLLOUT, "sending descriptors"));
    } else if (errno != EINTR) {
      return errors::FromErrno(errno, "sending descriptors");
    }
  }
  return Status::OK();
}

Status ReceiveWithDescriptors(int socket, std::span<std::byte> bytes, std::vector<UniqueFd>& fds) {
  ControlBuffer control;
  std::vector<UniqueFd> received;  // closed again on error
  size_t filled = 0;
  while (filled < bytes.size()) {
    iovec part{.iov_base = bytes.data() + filled, .iov_len = bytes.size() - filled};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof(control.bytes);
    const ssize_t count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        return errors::FromErrno(errno, "receiving descriptors");
      }
      RETURN_IF_ERROR(AwaitReady(socket, POLLIN, "receiving descriptors"));
      continue;
    }
    CollectDescriptors(message, received);
    if (count == 0) {
      return errors::IoError("the other side closed the socket after {} of {} bytes", filled,
                             bytes.size());
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0 || received.size() > kDescriptorsMax) {
      return errors::IoError(
          "descriptors were lost on the way: more than {} in one message, or the limit on open files "
          "(ulimit -n) is reached",
          kDescriptorsMax);
    }
    filled += static_cast<size_t>(count);
  }
  fds.insert(fds.end(), std::move_iterator(received.begin()), std::move_iterator(received.end()));
  return Status::OK();
}

}  // namespace datasystem::shm
