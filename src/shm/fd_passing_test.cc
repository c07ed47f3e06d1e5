#include "shm/fd_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <thread>

#include "shm/cache_memory.h"
#include "shm/mapped_segment.h"

namespace datasystem::shm {
namespace {

struct SocketPair {
  explicit SocketPair(int flags = 0) {
    std::array<int, 2> fds{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0, fds.data()), 0);
    a = UniqueFd(fds[0]);
    b = UniqueFd(fds[1]);
  }
  UniqueFd a;
  UniqueFd b;
};

TEST(FdPassing, AnotherProcessMapsTheCacheMemoryItWasSent) {
  SocketPair sockets;
  const pid_t child = ::fork();
  if (child == 0) {  // the client: maps what it is sent, changes the first byte, answers
    std::byte size_byte{};
    std::vector<UniqueFd> fds;
    if (ReceiveWithDescriptors(sockets.b.get(), {&size_byte, 1}, fds).IsError() || fds.size() != 1) {
      ::_exit(1);
    }
    auto mapped = MappedSegment::Map(fds[0], std::to_integer<uint64_t>(size_byte) << 20);
    if (!mapped.ok()) ::_exit(2);
    mapped->bytes()[0] = std::byte{7};
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  auto memory = CacheMemory::Create({.size_bytes = 2 << 20});
  ASSERT_TRUE(memory.ok());
  const SegmentHandle handle = (*memory)->segments().front();
  const std::byte size_byte{2};
  ASSERT_TRUE(SendWithDescriptors(sockets.a.get(), {&size_byte, 1}, {&handle.fd, 1}).IsOk());
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ((*memory)->Resolve({.segment = handle.id, .offset = 0, .size = 1})->front(), std::byte{7});
}

TEST(FdPassing, CarriesManyDescriptorsAndMoreBytesThanTheSocketHolds) {
  SocketPair sockets;
  std::vector<std::byte> sent(4 << 20);
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 31);
  const std::vector<int> fds(kDescriptorsMax, sockets.a.get());
  std::thread sender([&] { EXPECT_TRUE(SendWithDescriptors(sockets.a.get(), sent, fds).IsOk()); });
  std::vector<std::byte> received(sent.size());
  std::vector<UniqueFd> received_fds;
  EXPECT_TRUE(ReceiveWithDescriptors(sockets.b.get(), received, received_fds).IsOk());
  sender.join();
  EXPECT_TRUE(received == sent);
  ASSERT_EQ(received_fds.size(), kDescriptorsMax);
  EXPECT_TRUE(std::ranges::all_of(received_fds, [](const UniqueFd& fd) {
    return (::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC) != 0;
  }));
}

TEST(FdPassing, WaitsOnNonBlockingSockets) {
  SocketPair sockets(SOCK_NONBLOCK);
  std::vector<std::byte> sent(1 << 20, std::byte{3});
  std::thread sender([&] { EXPECT_TRUE(SendWithDescriptors(sockets.a.get(), sent, {}).IsOk()); });
  std::vector<std::byte> received(sent.size());
  std::vector<UniqueFd> fds;
  EXPECT_TRUE(ReceiveWithDescriptors(sockets.b.get(), received, fds).IsOk());
  sender.join();
  EXPECT_TRUE(received == sent);
}

TEST(FdPassing, RefusesTooManyDescriptorsAndNoBytes) {
  SocketPair sockets;
  const std::byte byte{};
  const std::vector<int> fds(kDescriptorsMax + 1, sockets.a.get());
  EXPECT_EQ(SendWithDescriptors(sockets.a.get(), {&byte, 1}, fds).GetCode(), K_INVALID);
  EXPECT_EQ(SendWithDescriptors(sockets.a.get(), {}, {fds.data(), 1}).GetCode(), K_INVALID);
}

TEST(FdPassing, EndOfStreamIsAnErrorAndKeepsNoDescriptor) {
  SocketPair sockets;
  SocketPair passed;
  const std::byte byte{};
  const int fd = passed.a.get();
  ASSERT_TRUE(SendWithDescriptors(sockets.a.get(), {&byte, 1}, {&fd, 1}).IsOk());
  sockets.a.reset();
  passed.a.reset();
  std::array<std::byte, 2> bytes{};
  std::vector<UniqueFd> fds;
  EXPECT_EQ(ReceiveWithDescriptors(sockets.b.get(), bytes, fds).GetCode(), K_IO_ERROR);
  EXPECT_TRUE(fds.empty());
  // Had the received copy of passed.a been leaked, this would not see the end of the stream.
  EXPECT_EQ(::recv(passed.b.get(), bytes.data(), 1, MSG_DONTWAIT), 0);
}

TEST(FdPassing, HonoursTheReceiveTimeOut) {
  SocketPair sockets;
  const timeval soon{.tv_sec = 0, .tv_usec = 1000};
  ASSERT_EQ(::setsockopt(sockets.b.get(), SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
  std::byte byte{};
  std::vector<UniqueFd> fds;
  EXPECT_EQ(ReceiveWithDescriptors(sockets.b.get(), {&byte, 1}, fds).GetCode(), K_IO_ERROR);
}

TEST(FdPassing, SendingToAClosedSocketIsAnErrorNotASignal) {
  SocketPair sockets;
  sockets.b.reset();
  const std::byte byte{};
  EXPECT_EQ(SendWithDescriptors(sockets.a.get(), {&byte, 1}, {}).GetCode(), K_IO_ERROR);
}

}  // namespace
}  // namespace datasystem::shm
