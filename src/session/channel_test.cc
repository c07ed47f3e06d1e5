// A connection with a channel, on a real loop; this thread is the client.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <future>
#include <thread>

#include "session/channel_poller.h"
#include "session/server_connection.h"

namespace datasystem::session {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

constexpr uint16_t kEcho = 1;
constexpr uint16_t kMuch = 2;  // answered with more than a channel holds

class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    socket_ = UniqueFd(ends[0]);
    ServerConnection::Socket server(loop_.context());
    server.assign(asio::generic::stream_protocol(AF_UNIX, 0), ends[1]);
    connection_ = std::make_shared<ServerConnection>(std::move(server), "client");
    poller_ = std::move(ChannelPoller::Create()).value();
    loop_.AddPoller(poller_.get());
    connection_->UseChannel(*layout_, *poller_);
    asio::co_spawn(loop_.context(), Serve(connection_), asio::detached);
    thread_ = std::thread([this] { loop_.Run(); });
  }
  void TearDown() override { Stop(); }
  void Stop() {
    if (!thread_.joinable()) return;
    loop_.Stop();
    thread_.join();
    loop_.RemovePoller(poller_.get());
    poller_.reset();
    loop_.DestroyPending();
  }

  asio::awaitable<void> Serve(std::shared_ptr<ServerConnection> connection) {
    for (;;) {
      auto frame = co_await connection->ReadFrame(kBodyMax);
      Status status = frame.status();
      if (status.IsOk()) {
        std::string body = frame->body;
        std::string payload(frame->header.payload_size, ' ');
        status = co_await connection->ReadPayload(std::as_writable_bytes(std::span(payload)));
        if (frame->header.type == kMuch) payload = std::string(kMuchBytes, 'm');
        std::vector<std::span<const std::byte>> parts;
        parts.push_back(std::as_bytes(std::span(payload)));
        if (status.IsOk()) {
          status = co_await connection->Write(frame->header.type, frame->header.request_id,
                                              std::move(body), std::move(parts));
        }
      }
      if (status.IsError()) {
        connection->Close();
        connection->LeaveChannel();
        ended_.set_value(status);
        co_return;
      }
    }
  }

  static std::string FrameOf(uint16_t type, const std::string& body, const std::string& payload) {
    const auto head = EncodeFrameHeader({.type = type,
                                         .request_id = 7,
                                         .body_size = static_cast<uint32_t>(body.size()),
                                         .payload_size = payload.size()});
    return std::string(reinterpret_cast<const char*>(head.data()), head.size()) + body + payload;
  }
  void PutInChannel(const std::string& bytes) {
    const auto part = std::as_bytes(std::span(bytes));
    bool wake = false;
    ASSERT_TRUE(out_.Write({&part, 1}, wake));
    if (wake) SendOnSocket(std::string(1, '\0'));
  }
  void SendOnSocket(const std::string& bytes) {
    ASSERT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  template <typename Condition>
  static bool Eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return condition();
  }
  std::string FromChannel(size_t size) {
    EXPECT_TRUE(Eventually([&] { return in_.Available().value_or(0) >= size; }));
    std::string bytes(in_.Available().value_or(0), ' ');
    in_.Read(std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  std::string FromSocket(size_t size) {
    std::string bytes(size, ' ');
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    const ssize_t count = ::recv(socket_.get(), bytes.data(), size, MSG_WAITALL);
    return bytes.substr(0, count < 0 ? 0 : count);
  }
  bool SocketIsSilent() {
    pollfd look{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    return ::poll(&look, 1, 0) == 0;
  }
  Status Ended() {
    auto ended = ended_.get_future();
    if (ended.wait_for(seconds(20)) != std::future_status::ready) return errors::Runtime("it lives");
    return ended.get();
  }

  static constexpr size_t kMuchBytes = 100'000;
  EventLoop loop_;
  std::unique_ptr<ChannelPoller> poller_;
  std::shared_ptr<ServerConnection> connection_;
  std::unique_ptr<shm::ChannelLayout> layout_ = std::make_unique<shm::ChannelLayout>();
  shm::RingWriter out_{layout_->to_worker};
  shm::RingReader in_{layout_->to_client};
  UniqueFd socket_;
  std::thread thread_;
  std::promise<Status> ended_;
};

TEST_F(ChannelTest, FramesComeAndGoThroughMemoryOnly) {
  for (int i = 0; i < 1000; ++i) {
    const std::string frame = FrameOf(kEcho, std::string(i % 50, 'b'), std::string(i * 7, 'p'));
    PutInChannel(frame);
    EXPECT_EQ(FromChannel(frame.size()), frame);
  }
  EXPECT_TRUE(SocketIsSilent()) << "this side never said that it sleeps";
}

TEST_F(ChannelTest, AnIdleLoopSleepsAndIsWoken) {
  const std::string frame = FrameOf(kEcho, "body", "payload");
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(Eventually([&] { return layout_->to_worker.asleep == 1; }));
    PutInChannel(frame);
    EXPECT_EQ(FromChannel(frame.size()), frame);
  }
}

TEST_F(ChannelTest, AClientThatSleepsIsWokenByAByte) {
  const std::string frame = FrameOf(kEcho, "body", "");
  for (int i = 0; i < 50; ++i) {
    in_.SayAsleep();
    PutInChannel(frame);
    EXPECT_EQ(FromSocket(1), std::string(1, '\0'));
    EXPECT_EQ(FromChannel(frame.size()), frame);
  }
}

TEST_F(ChannelTest, TheSocketStaysInUse) {
  const std::string frame = FrameOf(kEcho, "body", std::string(200'000, 'p'));
  for (int i = 0; i < 10; ++i) {
    SendOnSocket(std::string(i, '\0'));  // late wake-ups mean nothing
    std::thread sender([&] { SendOnSocket(frame); });
    EXPECT_EQ(FromSocket(frame.size()), frame);
    sender.join();
    PutInChannel(FrameOf(kEcho, "small", ""));
    EXPECT_EQ(FromChannel(1), FrameOf(kEcho, "small", ""));
  }
}

TEST_F(ChannelTest, AnAnswerThatIsTooLargeForTheChannelComesByTheSocket) {
  PutInChannel(FrameOf(kMuch, "body", ""));
  const std::string answer = FrameOf(kMuch, "body", std::string(kMuchBytes, 'm'));
  EXPECT_EQ(FromSocket(answer.size()), answer);
  EXPECT_FALSE(in_.HasBytes());
}

TEST_F(ChannelTest, NonsenseInTheChannelEndsTheConnection) {
  std::string cut = FrameOf(kEcho, "body", "payload");
  cut.pop_back();
  PutInChannel(cut);
  const Status ended = Ended();
  EXPECT_EQ(ended.GetCode(), K_INVALID);
  EXPECT_THAT(ended.GetMsg(), HasSubstr("payload of 7 bytes, of which 10 are there"));
  EXPECT_EQ(FromSocket(1), "") << "closed";
}

TEST_F(ChannelTest, AForeignFrameEndsTheConnection) {
  PutInChannel("GET / HTTP/1.1\r\nHost: somebody-else\r\n\r\n");
  EXPECT_EQ(Ended().GetCode(), K_INVALID);
}

TEST_F(ChannelTest, APositionOutOfRangeEndsTheConnection) {
  layout_->to_worker.written = uint64_t{1} << 40;
  SendOnSocket(std::string(1, '\0'));
  EXPECT_EQ(Ended().GetCode(), K_INVALID);
}

TEST_F(ChannelTest, AClientThatSaysItHasReadWhatWasNeverWrittenIsAnsweredByTheSocket) {
  layout_->to_client.read = 12345678;
  const std::string frame = FrameOf(kEcho, "body", "");
  PutInChannel(frame);
  EXPECT_EQ(FromSocket(frame.size()), frame);
}

TEST_F(ChannelTest, AClientThatClosesIsNoticedWhileTheChannelIsWaitedFor) {
  socket_.reset();
  EXPECT_EQ(Ended().GetCode(), K_CLIENT_WORKER_DISCONNECT);
}

TEST_F(ChannelTest, WhoWaitsIsToldWhenTheChannelGoes) {
  ASSERT_TRUE(Eventually([&] { return layout_->to_worker.asleep == 1; }));
  loop_.Post([&] { connection_->LeaveChannel(); });
  EXPECT_EQ(Ended().GetCode(), K_CLIENT_WORKER_DISCONNECT);
}

TEST_F(ChannelTest, TheLoopCanGoWhileSomebodyWaits) {
  ASSERT_TRUE(Eventually([&] { return layout_->to_worker.asleep == 1; }));
  const std::weak_ptr<ServerConnection> connection = connection_;
  connection_.reset();
  Stop();
  EXPECT_TRUE(connection.expired());
}

}  // namespace
}  // namespace datasystem::session
