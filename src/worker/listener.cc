#include "worker/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <asio/steady_timer.hpp>
#include <filesystem>

#include "base/log.h"
#include "base/unique_fd.h"

namespace datasystem::worker {
namespace {

constexpr int kBacklog = 512;

std::string PeerName(int fd, int family) {
  if (family == AF_UNIX) {
    ucred credentials{};
    socklen_t size = sizeof(credentials);
    ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
    return fmt::format("unix pid={} uid={}", credentials.pid, credentials.uid);
  }
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char host[INET6_ADDRSTRLEN] = "?";
  uint16_t port = 0;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    if (address.ss_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
      ::inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
      port = ntohs(v6->sin6_port);
    } else {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
      ::inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
      port = ntohs(v4->sin_port);
    }
  }
  return SocketAddress{host, port}.ToString();
}

bool SomebodyListens(const sockaddr_un& address) {
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

Listener::Listener(asio::io_context& context, int fd, int family, std::string path)
    : context_(context), family_(family), path_(std::move(path)), acceptor_(context) {
  acceptor_.assign(asio::generic::stream_protocol(family, 0), fd);
}

Listener::~Listener() { Close(); }

Result<std::unique_ptr<Listener>> Listener::OpenTcp(asio::io_context& context,
                                                    const SocketAddress& address) {
  sockaddr_storage storage;
  const socklen_t size = address.ToSockaddr(storage);
  UniqueFd fd(::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errors::FromErrno(errno, "cannot make a TCP socket");
  const int on = 1;
  // A restarted worker must not wait for old connections in TIME_WAIT; two listeners still exclude each
  // other.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&storage), size) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    const int error = errno;
    const std::string text = address.ToString();
    if (error == EADDRINUSE) {
      return errors::Runtime(
          "port {} of {} is in use by another process: stop it (`ss -ltnp 'sport = :{}'` shows it) or "
          "choose another worker_address",
          address.port, address.host, address.port);
    }
    if (error == EADDRNOTAVAIL) {
      return errors::Runtime(
          "{} is not an address of this machine (`ip address` lists them): correct worker_address, or set "
          "bind_address to a local one",
          address.host);
    }
    return errors::FromErrno(error, fmt::format("cannot listen on {}", text));
  }
  return std::unique_ptr<Listener>(new Listener(context, fd.release(), storage.ss_family, ""));
}

Result<std::unique_ptr<Listener>> Listener::OpenUnix(asio::io_context& context, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return errors::Invalid("the path of the Unix socket is {} bytes long, at most {} are possible: {}; "
                           "choose a shorter unix_domain_socket_dir",
                           path.size(), sizeof(address.sun_path) - 1, path);
  }
  path.copy(address.sun_path, path.size());
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  // Whatever our umask: clients of other users must be able to reach the socket.
  if (std::filesystem::create_directories(folder, error)) ::chmod(folder.c_str(), 0755);
  if (error) {
    return errors::IoError("cannot make unix_domain_socket_dir {}: {}", folder.string(), error.message());
  }
  if (SomebodyListens(address)) {
    return errors::Runtime("another worker listens on {}: give each its own unix_domain_socket_dir", path);
  }
  ::unlink(path.c_str());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errors::FromErrno(errno, "cannot make a Unix socket");
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    return errors::FromErrno(errno, fmt::format("cannot listen on the Unix socket {}", path));
  }
  return std::unique_ptr<Listener>(new Listener(context, fd.release(), AF_UNIX, path));
}

void Listener::Start(OnAccept on_accept) {
  on_accept_ = std::move(on_accept);
  AcceptNext();
}

bool Listener::Tune(Socket& socket) const {
  if (family_ == AF_UNIX) return true;
  // Requests and answers are single writes: waiting to merge them only adds delay.
  // A client whose host vanished must not hold memory for hours: probed after 15 s of silence, and given
  // up after 30 s without any acknowledgement.
  const auto set = [&socket](int level, int option, int value) {
    return ::setsockopt(socket.native_handle(), level, option, &value, sizeof(value)) == 0;
  };
  return set(IPPROTO_TCP, TCP_NODELAY, 1) && set(SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set(IPPROTO_TCP, TCP_KEEPIDLE, 15) && set(IPPROTO_TCP, TCP_KEEPINTVL, 5) &&
         set(IPPROTO_TCP, TCP_KEEPCNT, 3) && set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

void Listener::AcceptNext() {
  acceptor_.async_accept([this](asio::error_code error, Socket socket) {
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (!error && Tune(socket)) {
      std::string peer = PeerName(socket.native_handle(), family_);
      on_accept_(std::move(socket), std::move(peer));
    }
    if (!error) return AcceptNext();
    // Out of descriptors, most likely: trying again at once would spin.
    LOG_ERROR("cannot accept a connection, trying again in a second error={}", error.message());
    auto timer = std::make_shared<asio::steady_timer>(context_, std::chrono::seconds(1));
    timer->async_wait([this, timer](asio::error_code stopped) {
      if (!stopped && acceptor_.is_open()) AcceptNext();
    });
  });
}

void Listener::Close() {
  if (!acceptor_.is_open()) return;
  asio::error_code ignored;
  acceptor_.close(ignored);
  if (!path_.empty()) ::unlink(path_.c_str());
}

}  // namespace datasystem::worker
