// What only real processes, sockets and UCX itself can show.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "base/unique_fd.h"
#include "transport/endpoint_address.h"
#include "transport/test_cluster.h"
#include "transport/test_peer.h"

namespace datasystem::transport {
namespace {

using ::testing::HasSubstr;

// test_peer in a process of its own; killed on destruction.
class PeerProcess {
 public:
  PeerProcess(const std::string& mode, uint64_t own, uint64_t other) {
    int in[2];
    int out[2];
    CHECK(::pipe2(in, O_CLOEXEC) == 0 && ::pipe2(out, O_CLOEXEC) == 0);
    const std::string own_text = std::to_string(own);
    const std::string other_text = std::to_string(other);
    pid_ = ::vfork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      ::execl(TEST_PEER, TEST_PEER, mode.c_str(), own_text.c_str(), other_text.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    to_ = UniqueFd(in[1]);
    from_ = UniqueFd(out[0]);
    endpoint_ = FromHex(ReadLine());
  }
  ~PeerProcess() {
    Signal(SIGCONT);
    Signal(SIGKILL);
    Wait();
  }

  const std::string& endpoint() const { return endpoint_; }
  void Introduce(const std::string& endpoint) {
    const std::string line = ToHex(endpoint) + "\n";
    CHECK(::write(to_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()));
  }
  void Signal(int signal) {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  int Wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  std::string ReadLine() {
    std::string line;
    for (char c = 0; ::read(from_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd to_;
  UniqueFd from_;
  std::string endpoint_;
};

// Ports on which this process listens.
std::set<uint16_t> ListeningPorts() {
  std::set<std::string> inodes;
  for (int fd = 0; fd < 4096; ++fd) {
    char link[64] = {};
    if (::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), link, sizeof(link) - 1) < 0) continue;
    if (const std::string text = link; text.starts_with("socket:[")) inodes.insert(text.substr(8, text.size() - 9));
  }
  std::set<uint16_t> ports;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::vector<std::string> field;
    for (std::string each; fields >> each;) field.push_back(each);
    if (field.size() > 9 && field[3] == "0A" && inodes.contains(field[9])) {
      ports.insert(static_cast<uint16_t>(std::stoi(field[1].substr(field[1].find(':') + 1), nullptr, 16)));
    }
  }
  return ports;
}

UniqueFd ConnectTo(uint16_t port) {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  return fd;
}

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

class UcxTransportTest : public ::testing::Test {
 protected:
  void SetUp() override { cluster_.Add(self_); }

  std::unique_ptr<PeerProcess> StartPeer(const std::string& mode = "serve", bool announce = true) {
    auto process = std::make_unique<PeerProcess>(mode, peer_.incarnation, self_.incarnation);
    process->Introduce(cluster_.PeerOf(self_).endpoint);
    if (announce) SetPeers({{peer_, process->endpoint()}});
    return process;
  }
  void SetPeers(std::vector<Peer> peers) {
    cluster_.Do([&] { cluster_.node(self_).SetPeers(std::move(peers)); });
  }
  Result<Answer> Echo() { return cluster_.Call(self_, peer_, kPeerEcho, "x", 5s); }
  // A connection may be cut by the other side just after it was renewed.
  bool EchoesAgain() {
    for (int i = 0; i < 50; ++i) {
      if (cluster_.Call(self_, peer_, kPeerEcho, "x", 500ms).ok()) return true;
    }
    return false;
  }

  const PeerId self_{"127.0.0.1:1", 1001};
  const PeerId peer_{"127.0.0.2:1", 2002};
  UcxTestCluster cluster_;
};

TEST_F(UcxTransportTest, APeerInAnotherProcessAnswersWithPayload) {
  auto process = StartPeer();
  auto target = std::make_shared<BufferTarget>();
  const Result<Answer> answer = cluster_.Call(self_, peer_, kPeerFetch, "67108864", 20s, target);
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_TRUE(target->bytes() == PatternBytes(64 << 20, kPeerSeed));
}

TEST_F(UcxTransportTest, AKilledPeerEndsItsCallsAtOnce) {
  for (const bool during_transfers : {false, true}) {
    auto process = StartPeer();
    ASSERT_TRUE(Echo().ok());
    std::vector<TestCluster::Outcome> outcomes;
    for (int i = 0; i < 8; ++i) {
      outcomes.push_back(during_transfers ? cluster_.Start(self_, peer_, kPeerFetch, "67108864", 20s,
                                                           std::make_shared<BufferTarget>())
                                          : cluster_.Start(self_, peer_, kPeerIgnore, ""));
    }
    if (during_transfers) (void)cluster_.Await(outcomes[0]);
    process->Signal(SIGKILL);
    const TimePoint killed = cluster_.Now();
    for (size_t i = during_transfers ? 7 : 0; i < outcomes.size(); ++i) {
      EXPECT_EQ(cluster_.Await(outcomes[i]).status().GetCode(), K_RPC_PEER_DEAD);
    }
    EXPECT_LT(cluster_.Now() - killed, 2s);
    const Result<Answer> after = Echo();
    EXPECT_THAT(after.status().GetCode(), ::testing::AnyOf(K_RPC_UNAVAILABLE, K_RPC_PEER_DEAD));
    SetPeers({});
  }
}

TEST_F(UcxTransportTest, ConnectingToADeadProcessFailsFast) {
  auto process = StartPeer();
  process->Signal(SIGKILL);
  process->Wait();
  const TimePoint start = cluster_.Now();
  EXPECT_EQ(Echo().status().GetCode(), K_RPC_UNAVAILABLE);
  EXPECT_LT(cluster_.Now() - start, 2s);
}

TEST_F(UcxTransportTest, ADeadProcessIsNotConnectedToByEveryCall) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator open("/proc/self/fd");
    return std::distance(begin(open), end(open));
  };
  auto process = StartPeer();
  process->Signal(SIGKILL);
  process->Wait();
  EXPECT_EQ(Echo().status().GetCode(), K_RPC_UNAVAILABLE);
  const auto before = descriptors();
  const TimePoint start = cluster_.Now();
  constexpr int kCalls = 500;
  for (int i = 0; i < kCalls; ++i) EXPECT_EQ(Echo().status().GetCode(), K_RPC_UNAVAILABLE);
  // UCX loses one with each attempt; after ten failures they are half a second apart.
  EXPECT_LT(descriptors() - before, 15 + (cluster_.Now() - start) / 500ms);
}

TEST_F(UcxTransportTest, AStoppedPeerCostsNoMoreThanTheDeadlineAndWritesNothingLater) {
  auto process = StartPeer();
  ASSERT_TRUE(Echo().ok());
  // Payloads go one after another; stop the peer when the second has begun to arrive.
  std::vector<std::shared_ptr<BufferTarget>> targets;
  std::vector<TestCluster::Outcome> outcomes;
  for (int i = 0; i < 4; ++i) {
    targets.push_back(std::make_shared<BufferTarget>());
    outcomes.push_back(cluster_.Start(self_, peer_, kPeerFetch, "67108864", 3s, targets.back()));
  }
  ASSERT_TRUE(cluster_.Eventually([&] { return !targets[1]->bytes().empty(); }));
  process->Signal(SIGSTOP);
  int failed = 0;
  for (const auto& outcome : outcomes) {
    const StatusCode code = cluster_.Await(outcome, 5s).status().GetCode();
    // Once the first overdue transfer is cut off, the rest of that connection ends with it.
    EXPECT_THAT(code, ::testing::AnyOf(K_OK, K_RPC_DEADLINE_EXCEEDED, K_RPC_PEER_DEAD));
    failed += code == K_OK ? 0 : 1;
  }
  EXPECT_GT(failed, 0);
  std::vector<std::string> before;
  for (const auto& target : targets) {
    // Nothing can land there once the transport has let go of it.
    ASSERT_TRUE(cluster_.Eventually([&] { return target.use_count() == 1; }, 5s));
    before.push_back(target->bytes());
  }
  process->Signal(SIGCONT);
  const TimePoint resumed = cluster_.Now();
  EXPECT_TRUE(EchoesAgain());
  auto again = std::make_shared<BufferTarget>();
  EXPECT_TRUE(cluster_.Call(self_, peer_, kPeerFetch, "67108864", 10s, again).ok());
  EXPECT_LT(cluster_.Now() - resumed, 10s) << "UCX itself needs 20 s";
  for (size_t i = 0; i < targets.size(); ++i) EXPECT_TRUE(targets[i]->bytes() == before[i]) << i;
}

TEST_F(UcxTransportTest, MalformedMessagesAreRefusedAndTheProcessLives) {
  auto process = StartPeer();
  ASSERT_TRUE(Echo().ok());
  for (uint64_t round = 0; round < 3; ++round) {
    // Once as a stranger, then in the name of the member.
    PeerProcess attacker("attack", round == 0 ? 666 : peer_.incarnation, self_.incarnation);
    attacker.Introduce(cluster_.PeerOf(self_).endpoint);
    EXPECT_EQ(attacker.ReadLine(), "done");
  }
  uint64_t refused = 0;
  cluster_.Do([&] { refused = cluster_.node(self_).refused_messages(); });
  EXPECT_GT(refused, 1000U);
  EXPECT_TRUE(EchoesAgain());
}

TEST_F(UcxTransportTest, RandomBytesOnTheListeningPortsDoNoHarm) {
  auto process = StartPeer();
  const std::set<uint16_t> ports = ListeningPorts();
  ASSERT_FALSE(ports.empty());
  std::mt19937_64 random(3);
  for (uint16_t port : ports) {
    for (int i = 0; i < 20; ++i) {
      const UniqueFd fd = ConnectTo(port);
      std::string bytes(1 + random() % 5000, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }
  EXPECT_TRUE(Echo().ok());
}

TEST_F(UcxTransportTest, EndpointsThatAreGarbageAreRefused) {
  auto process = StartPeer("serve", /*announce=*/false);
  std::string changed = process->endpoint();
  changed[changed.size() / 2] ^= 1;
  for (const std::string& endpoint : {std::string(), std::string("garbage"), std::string(5000, '\xff'), changed}) {
    SetPeers({{peer_, endpoint}});
    EXPECT_EQ(Echo().status().GetCode(), K_RPC_UNAVAILABLE);
  }
  SetPeers({{peer_, process->endpoint()}});
  EXPECT_TRUE(EchoesAgain());
}

TEST_F(UcxTransportTest, UsesNoCpuWhileIdleButConnected) {
  auto process = StartPeer();
  ASSERT_TRUE(Echo().ok());
  const double before = CpuSeconds();
  asio::io_context idle;
  asio::steady_timer pause(idle, 300ms);
  pause.wait();
  EXPECT_LT(CpuSeconds() - before, 0.03);
}

TEST_F(UcxTransportTest, ADeadlineFiresWhileTheLoopSleeps) {
  auto process = StartPeer();
  ASSERT_TRUE(Echo().ok());
  const TimePoint start = cluster_.Now();
  EXPECT_EQ(cluster_.Call(self_, peer_, kPeerIgnore, "", 30ms).status().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_LT(cluster_.Now() - start, 1s);
}

TEST_F(UcxTransportTest, PayloadFromAndToRegisteredMemoryWorks) {
  static std::string segment(8 << 20, '\0');
  cluster_.Do([&] {
    EXPECT_TRUE(cluster_.node(self_).RegisterMemory(std::as_writable_bytes(std::span(segment))).IsOk());
  });
  auto process = StartPeer();
  EXPECT_TRUE(cluster_.Call(self_, peer_, kPeerFetch, "4000000", 5s, std::make_shared<BufferTarget>()).ok());
}

// Each runs in a process of its own: the environment is the process's.
class UcxStart : public ::testing::Test {
 protected:
  static void ExpectRefusal(const char* tls, std::vector<std::string> parts) {
    ::setenv("UCX_TLS", tls, 1);
    EventLoop loop;
    UcxOptions options;
    options.self = {"127.0.0.1:1", 1};
    options.enable_rdma = true;
    options.local_ip = "127.0.0.1";
    const auto transport = UcxTransport::Create(loop, options);
    bool as_expected = !transport.ok() && transport.status().GetCode() == K_RUNTIME_ERROR;
    const std::string text = transport.ok() ? "it started" : transport.status().GetMsg();
    for (const std::string& part : parts) as_expected = as_expected && text.find(part) != std::string::npos;
    std::fprintf(stderr, "%s\n", text.c_str());
    std::_Exit(as_expected ? 0 : 1);
  }
  static void ExpectStart(bool enable_rdma, const char* tls) {
    ::setenv("UCX_TLS", tls, 1);
    EventLoop loop;
    UcxOptions options;
    options.self = {"127.0.0.1:1", 1};
    options.enable_rdma = enable_rdma;
    options.local_ip = "127.0.0.1";
    const auto transport = UcxTransport::Create(loop, options);
    if (!transport.ok()) std::fprintf(stderr, "%s\n", transport.status().GetMsg().c_str());
    std::_Exit(transport.ok() ? 0 : 1);
  }
};

#ifdef DS_WITH_RDMA
TEST_F(UcxStart, TransportsThatDoNotExistAreNamedWithThoseThatDo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ExpectRefusal("rc_z", {"UCX_TLS=rc_z", "tcp/lo", "enable_rdma=false"}),
              ::testing::ExitedWithCode(0), "rc_z");
  EXPECT_EXIT(ExpectRefusal("posix", {"UCX_TLS=posix", "tcp/lo"}), ::testing::ExitedWithCode(0), "posix");
}

TEST_F(UcxStart, TcpWorksWithRdmaEnabled) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ExpectStart(true, "tcp"), ::testing::ExitedWithCode(0), "");
}
#else
TEST_F(UcxStart, ABuildWithoutRdmaRefusesToEnableIt) {
  EventLoop loop;
  UcxOptions options;
  options.enable_rdma = true;
  const auto transport = UcxTransport::Create(loop, options);
  EXPECT_EQ(transport.status().GetCode(), K_NOT_SUPPORTED);
  EXPECT_THAT(transport.status().GetMsg(), HasSubstr("-A on"));
}
#endif

TEST_F(UcxStart, WithoutRdmaTheEnvironmentsTransportsAreIgnored) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ExpectStart(false, "rc_x"), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace datasystem::transport
