// The parts that need no connection: wire header, endpoint envelope, choice of lanes and devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "transport/endpoint_address.h"
#include "transport/lanes.h"
#include "transport/network_device.h"
#include "transport/transport.h"
#include "transport/wire_header.h"

namespace datasystem::transport {
namespace {

using ::testing::HasSubstr;

WireHeader AnswerHeader() {
  return {.kind = MessageKind::kAnswer, .type = 5, .request_id = 77, .sender = 1, .receiver = 2,
          .body_size = 3, .payload_size = 1000};
}

std::string Head(const WireHeader& header, size_t body) {
  const WireHeader::Bytes bytes = header.Encode();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()) + std::string(body, 'b');
}

Status DecodeStatus(std::string_view head, uint64_t data) {
  return WireHeader::Decode(std::as_bytes(std::span(head)), data).status();
}

TEST(WireHeader, DecodesWhatItEncoded) {
  const std::string head = Head(AnswerHeader(), 3);
  const Result<WireHeader> read = WireHeader::Decode(std::as_bytes(std::span(head)), 1000);
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->kind, MessageKind::kAnswer);
  EXPECT_EQ(read->type, 5);
  EXPECT_EQ(read->request_id, 77U);
  EXPECT_EQ(read->sender, 1U);
  EXPECT_EQ(read->receiver, 2U);
  EXPECT_EQ(read->payload_size, 1000U);
}

TEST(WireHeader, RefusesSizesThatDoNotFitTheMessage) {
  const std::string head = Head(AnswerHeader(), 3);
  EXPECT_TRUE(DecodeStatus(head, 999).IsError());
  EXPECT_TRUE(DecodeStatus(head, 1001).IsError());
  EXPECT_TRUE(DecodeStatus(head + "x", 1000).IsError());
  EXPECT_TRUE(DecodeStatus(head.substr(0, head.size() - 1), 1000).IsError());
  for (size_t size = 0; size < WireHeader::kSize; ++size) {
    EXPECT_TRUE(DecodeStatus(head.substr(0, size), 1000).IsError()) << size;
  }
}

TEST(WireHeader, RefusesFieldsThatContradictEachOther) {
  auto refused = [](auto change, uint64_t data) {
    WireHeader header{.kind = MessageKind::kRequest, .request_id = 1, .sender = 1, .receiver = 2};
    change(header);
    return DecodeStatus(Head(header, header.body_in_data ? 0 : header.body_size), data).IsError();
  };
  EXPECT_FALSE(refused([](WireHeader&) {}, 0)) << "the unchanged one is fine";
  EXPECT_TRUE(refused([](WireHeader& h) { h.sender = 0; }, 0));
  EXPECT_TRUE(refused([](WireHeader& h) { h.kind = static_cast<MessageKind>(0); }, 0));
  EXPECT_TRUE(refused([](WireHeader& h) { h.kind = static_cast<MessageKind>(7); }, 0));
  EXPECT_TRUE(refused([](WireHeader& h) { h.payload_size = 10; }, 10)) << "a request with payload";
  EXPECT_TRUE(refused([](WireHeader& h) { h.status = 3; }, 0)) << "a request with a status";
  EXPECT_TRUE(refused([](WireHeader& h) { h.subject = 3; }, 0)) << "a plain request with a subject";
  EXPECT_TRUE(refused([](WireHeader& h) { h.kind = MessageKind::kForwarded; }, 0)) << "forwarded for nobody";
  EXPECT_TRUE(refused([](WireHeader& h) { h.body_in_data = true; }, 0)) << "a body in no data";
  EXPECT_TRUE(refused([](WireHeader& h) { h.body_before = true; }, 0));
  EXPECT_TRUE(refused(
      [](WireHeader& h) {
        h.kind = MessageKind::kAnswer;
        h.status = 3;
        h.payload_size = 8;
      },
      8))
      << "an error with payload";
  EXPECT_TRUE(refused(
      [](WireHeader& h) {
        h.body_in_data = true;
        h.body_size = Transport::kBodyMax + 1;
      },
      Transport::kBodyMax + 1));
}

TEST(WireHeader, RandomBytesAreRefusedOrConsistent) {
  std::mt19937_64 random(1);
  const std::string good = Head(AnswerHeader(), 3);
  for (int i = 0; i < 100000; ++i) {
    std::string head = good;
    for (int k = 0; k < 3; ++k) head[random() % head.size()] = static_cast<char>(random());
    const Result<WireHeader> read = WireHeader::Decode(std::as_bytes(std::span(head)), 1000);
    if (!read.ok()) continue;
    ASSERT_EQ(read->body_size, 3U);
    ASSERT_EQ(read->payload_size, 1000U);
  }
}

TEST(Endpoint, ComesBackOutOfItsEnvelope) {
  const std::string address("\0\1\2ucx", 6);
  const Result<std::string> read = UnwrapEndpoint(WrapEndpoint(address));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, address);
}

TEST(Endpoint, EveryChangedBitAndEveryCutIsRefused) {
  const std::string good = WrapEndpoint(std::string(50, 'a'));
  for (size_t i = 0; i < good.size() * 8; ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    EXPECT_FALSE(UnwrapEndpoint(bad).ok()) << i;
  }
  for (size_t size = 0; size < good.size(); ++size) EXPECT_FALSE(UnwrapEndpoint(good.substr(0, size)).ok());
  EXPECT_FALSE(UnwrapEndpoint(good + "x").ok());
  EXPECT_FALSE(UnwrapEndpoint(WrapEndpoint("")).ok());
}

TEST(Lanes, WithoutRdmaItIsTcpWhateverTheEnvironmentSays) {
  EXPECT_EQ(ChooseLanes(false, "rc_x", {})->tls, "tcp");
  EXPECT_FALSE(ChooseLanes(false, "rc_x", {{"rc_mlx5", "mlx5_0:1"}})->rdma);
}

TEST(Lanes, TheEnvironmentDecidesWithRdma) {
  EXPECT_EQ(ChooseLanes(true, "tcp", {{"tcp", "eth0"}})->tls, "tcp");
  EXPECT_FALSE(ChooseLanes(true, "tcp", {{"rc_mlx5", "mlx5_0:1"}})->rdma);
  EXPECT_TRUE(ChooseLanes(true, "tcp,rc", {{"rc_verbs", "rxe0:1"}})->rdma);
  EXPECT_FALSE(ChooseLanes(true, "rc_x", {{"tcp", "eth0"}})->rdma) << "no device, nothing to lock";
}

TEST(Lanes, RcXComesFirstThenTheBestOfTheRest) {
  EXPECT_EQ(ChooseLanes(true, std::nullopt, {{"ud_verbs", "a:1"}, {"rc_mlx5", "a:1"}})->tls, "rc_x");
  EXPECT_EQ(ChooseLanes(true, std::nullopt, {{"ud_verbs", "rxe0:1"}, {"rc_verbs", "rxe0:1"}})->tls, "rc_v");
  EXPECT_TRUE(ChooseLanes(true, std::nullopt, {{"ud_verbs", "rxe0:1"}})->rdma);
}

TEST(Lanes, WithoutAnyRdmaDeviceTheStartIsRefusedWithWhatThereIs) {
  const auto refused = ChooseLanes(true, std::nullopt, {{"tcp", "eth0"}, {"posix", "memory"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().GetCode(), K_RUNTIME_ERROR);
  EXPECT_THAT(refused.status().GetMsg(), HasSubstr("tcp/eth0, posix/memory"));
  EXPECT_THAT(refused.status().GetMsg(), HasSubstr("UCX_TLS=tcp"));
}

TEST(Memlock, ALimitBelowTheNeedIsRefusedWithTheRemedy) {
  const Status refused = CheckMemlock(8 << 20, 1 << 30, true);
  EXPECT_EQ(refused.GetCode(), K_RUNTIME_ERROR);
  for (const char* part : {"8388608", "1073741824", "ulimit -l unlimited", "LimitMEMLOCK=infinity"}) {
    EXPECT_THAT(refused.GetMsg(), HasSubstr(part));
  }
  EXPECT_TRUE(CheckMemlock(8 << 20, 1 << 30, false).IsOk());
  EXPECT_TRUE(CheckMemlock(1 << 30, 1 << 30, true).IsOk());
  EXPECT_TRUE(CheckMemlock(UINT64_MAX, 1 << 30, true).IsOk());
}

TEST(Lanes, EveryCardThatIsUsedLocksTheMemory) {
  const std::vector<UcxDevice> devices = {{"rc_mlx5", "mlx5_0:1"}, {"ud_mlx5", "mlx5_0:1"}, {"rc_mlx5", "mlx5_1:1"},
                                          {"tcp", "eth0"}};
  EXPECT_EQ(CountCards(devices, ""), 2U);
  EXPECT_EQ(CountCards(devices, "all"), 2U);
  EXPECT_EQ(CountCards(devices, "mlx5_1:1,eth0"), 1U);
  EXPECT_EQ(CountCards(devices, "^mlx5_1:1"), 2U) << "rather one too many";
  EXPECT_EQ(CountCards({{"tcp", "eth0"}}, "eth0"), 1U);
}

TEST(NetworkDevice, EveryLoopbackAddressIsOnLo) {
  EXPECT_EQ(InterfaceOf("127.0.0.1"), "lo");
  EXPECT_EQ(InterfaceOf("127.0.0.2"), "lo");
  EXPECT_EQ(InterfaceOf("203.0.113.77"), "");
  EXPECT_EQ(InterfaceOf("not an address"), "");
}

TEST(NetworkDevice, FindsTheRdmaPortBoundToAnInterface) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(::testing::TempDir()) / "sysfs_of_network_device_test";
  const fs::path gids = root / "class/infiniband/mlx5_1/ports/2/gid_attrs/ndevs";
  fs::create_directories(gids);
  std::ofstream(gids / "0") << "eth7\n";
  EXPECT_EQ(RdmaDeviceOf("eth7", root), "mlx5_1:2");
  EXPECT_EQ(RdmaDeviceOf("eth8", root), "");
  EXPECT_EQ(RdmaDeviceOf("eth7", root / "nowhere"), "");
  fs::remove_all(root);
}

}  // namespace
}  // namespace datasystem::transport
