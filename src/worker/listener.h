// Listening sockets of the worker: TCP on its address, a Unix socket for clients of the same node.
// Threads: Open before the loop runs; the rest on the loop's thread.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <asio/basic_socket_acceptor.hpp>
#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/socket_address.h"

namespace datasystem::worker {

class Listener {
 public:
  using Socket = asio::generic::stream_protocol::socket;
  // Called for each connection; `peer` names the other side.
  using OnAccept = std::function<void(Socket socket, std::string peer)>;

  // Errors name the address and the remedy: in use, not of this machine, port not allowed.
  static Result<std::unique_ptr<Listener>> OpenTcp(asio::io_context& context, const SocketAddress& address);
  // Replaces a socket file that nobody listens on any more. The folder is made; anybody on the node may
  // connect (mode 0666), the handshake decides.
  static Result<std::unique_ptr<Listener>> OpenUnix(asio::io_context& context, const std::string& path);
  ~Listener();

  void Start(OnAccept on_accept);
  void Close();

 private:
  Listener(asio::io_context& context, int fd, int family, std::string path);
  void AcceptNext();
  bool Tune(Socket& socket) const;

  asio::io_context& context_;
  const int family_;
  const std::string path_;  // of the Unix socket, removed at the end
  asio::basic_socket_acceptor<asio::generic::stream_protocol> acceptor_;
  OnAccept on_accept_;
};

}  // namespace datasystem::worker
