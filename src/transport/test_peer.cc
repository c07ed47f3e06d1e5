// The other process of ucx_transport_test.
//
//   serve <own incarnation> <the other's incarnation>: answers until it is killed
//   attack ...: raw UCX; sends malformed active messages of every kind, then exits with 0
//   measure ...: prints latencies and bandwidths of calls to a serving peer
// Prints its own endpoint in hex on the first line, then reads the other's from standard input.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <iostream>
#include <random>

#include "transport/endpoint_address.h"
#include "transport/test_cluster.h"
#include "transport/test_peer.h"

namespace datasystem::transport {
namespace {

class Segment {
 public:
  explicit Segment(size_t size) : bytes_(std::make_shared<std::string>(PatternBytes(size, kPeerSeed))) {}
  Payload Of(size_t size) const {
    Payload payload;
    payload.parts.push_back(std::as_bytes(std::span(*bytes_)).first(std::min(size, bytes_->size())));
    payload.owner = bytes_;
    return payload;
  }

 private:
  std::shared_ptr<std::string> bytes_;
};

class ReusedTarget final : public PayloadTarget {
 public:
  explicit ReusedTarget(std::string& buffer) : buffer_(buffer) {}
  Result<Places> Prepare(std::string_view, uint64_t) override {
    return Places{std::as_writable_bytes(std::span(buffer_))};
  }

 private:
  std::string& buffer_;
};

std::unique_ptr<UcxTransport> Create(EventLoop& loop, const PeerId& self) {
  UcxOptions options;
  options.self = self;
  options.local_ip = "127.0.0.2";
  auto transport = UcxTransport::Create(loop, options);
  CHECK(transport.ok());
  std::cout << ToHex((*transport)->endpoint()) << std::endl;
  return *std::move(transport);
}

int Serve(const PeerId& self, PeerId other, std::string (*read_endpoint)()) {
  EventLoop loop;
  auto transport = Create(loop, self);
  const Segment segment(64 << 20);
  transport->SetRequestHandler([&](Request request) {
    if (request.type == kPeerIgnore) return;
    const size_t size = request.type == kPeerFetch ? std::stoull(request.body) : 0;
    transport->Respond(request.from, Status::OK(), request.body, segment.Of(size));
  });
  transport->SetPeers({{other, read_endpoint()}});
  loop.Run();
  return 0;
}

asio::awaitable<void> Measure(UcxTransport& transport, PeerId to, EventLoop& loop) {
  std::string buffer(64 << 20, '\1');
  auto target = std::make_shared<ReusedTarget>(buffer);
  for (const auto& [size, rounds] : {std::pair<size_t, int>{0, 20000}, {64, 20000}, {1 << 20, 1000}, {64 << 20, 30}}) {
    std::vector<double> micros;
    for (int i = 0; i < rounds; ++i) {
      std::string body = size == 0 ? std::string(64, 'x') : std::to_string(size);
      const auto start = std::chrono::steady_clock::now();
      const TimePoint deadline = start + 10s;
      Result<Answer> answer =
          co_await transport.Call(to, size == 0 ? kPeerEcho : kPeerFetch, body, deadline, target);
      CHECK(answer.ok());
      micros.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(micros.begin(), micros.end());
    const double median = micros[micros.size() / 2];
    std::cout << "payload " << size << ": p50 " << median << " us, p99 " << micros[micros.size() * 99 / 100]
              << " us, " << static_cast<double>(size) / median << " MB/s" << std::endl;
  }
  loop.Stop();
}

int RunMeasure(const PeerId& self, PeerId other, std::string (*read_endpoint)()) {
  EventLoop loop;
  auto transport = Create(loop, self);
  transport->SetPeers({{other, read_endpoint()}});
  asio::co_spawn(loop.context(), Measure(*transport, other, loop), asio::detached);
  loop.Run();
  return 0;
}

class RawSender {
 public:
  explicit RawSender(const std::string& address) {
    UcxOptions options;
    options.local_ip = "127.0.0.1";
    auto context = UcxContext::Create(options);
    CHECK(context.ok());
    context_ = *std::move(context);
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.address = reinterpret_cast<const ucp_address_t*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    CHECK(ucp_ep_create(context_->worker(), &params, &endpoint_) == UCS_OK);
  }
  void Send(unsigned id, std::string head_bytes, std::string data_bytes, bool rendezvous) {
    const std::string& head = sent_.emplace_back(std::move(head_bytes));
    const std::string& data = sent_.emplace_back(std::move(data_bytes));
    ucp_request_param_t params{};
    params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = rendezvous && !data.empty() ? UCP_AM_SEND_FLAG_RNDV : 0;
    Wait(ucp_am_send_nbx(endpoint_, id, head.data(), head.size(), data.data(), data.size(), &params));
  }
  void Flush() {
    ucp_request_param_t params{};
    Wait(ucp_ep_flush_nbx(endpoint_, &params));
  }

 private:
  void Wait(ucs_status_ptr_t request) {
    if (!UCS_PTR_IS_PTR(request)) return;
    // The receiver keeps what strangers send for a while: do not wait for that.
    const TimePoint end = Clock::Steady().Now() + 20ms;
    while (ucp_request_check_status(request) == UCS_INPROGRESS && Clock::Steady().Now() < end) {
      ucp_worker_progress(context_->worker());
    }
    ucp_request_free(request);
  }

  std::deque<std::string> sent_;  // UCX reads them until the receiver has decided
  std::unique_ptr<UcxContext> context_;
  ucp_ep_h endpoint_ = nullptr;
};

// Every message that a header can claim to be, true and false, from members and strangers.
int Attack(const PeerId& self, PeerId other, std::string (*read_endpoint)()) {
  std::cout << ToHex("nobody listens here") << std::endl;
  RawSender sender(*UnwrapEndpoint(read_endpoint()));
  std::mt19937_64 random(self.incarnation);
  std::string large(1 << 20, 'x');
  for (int i = 0; i < 4000; ++i) {
    WireHeader header;
    header.kind = static_cast<MessageKind>(random() % 8);
    header.body_in_data = random() % 4 == 0;
    header.body_before = random() % 4 == 0;
    header.type = static_cast<uint16_t>(random());
    header.request_id = random() % 8 == 0 ? random() : 1 + random() % 4;
    header.sender = random() % 4 == 0 ? random() % 3 : self.incarnation;
    header.receiver = random() % 8 == 0 ? random() : other.incarnation;
    header.subject = random() % 3 == 0 ? random() % 3 : random() % 2 == 0 ? self.incarnation : 0;
    header.status = random() % 4 == 0 ? static_cast<uint32_t>(random()) : 0;
    const size_t data_size = random() % 3 == 0 ? random() % 100 : random() % 40 == 0 ? large.size() : 0;
    const size_t body_size = random() % 2 == 0 ? random() % 100 : 0;
    const bool lie = random() % 2 == 0;
    header.body_size = lie ? random() >> (random() % 64) : header.body_in_data ? data_size : body_size;
    header.payload_size = lie ? random() >> (random() % 64) : header.body_in_data ? 0 : data_size;
    const WireHeader::Bytes bytes = header.Encode();
    std::string head(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    head.append(std::string(header.body_in_data ? 0 : body_size, 'b'));
    if (random() % 10 == 0) head.resize(random() % head.size());
    if (random() % 10 == 0) head[random() % (head.size() + 1)] ^= static_cast<char>(random());
    sender.Send(random() % 20 == 0 ? 7 : 1, head, large.substr(0, data_size), random() % 2 == 0);
  }
  sender.Flush();
  std::cout << "done" << std::endl;
  std::_Exit(0);  // UCX would insist on ending what we began
}

std::string ReadEndpoint() {
  std::string line;
  std::getline(std::cin, line);
  return FromHex(line);
}

int Run(int count, char** arguments) {
  if (count != 4) return 2;
  const std::string mode = arguments[1];
  const PeerId self{"127.0.0.2:1", std::stoull(arguments[2])};
  const PeerId other{"127.0.0.1:1", std::stoull(arguments[3])};
  if (mode == "serve") return Serve(self, other, &ReadEndpoint);
  if (mode == "measure") return RunMeasure(self, {"127.0.0.2:1", other.incarnation}, &ReadEndpoint);
  if (mode == "attack") return Attack(self, other, &ReadEndpoint);
  return 2;
}

}  // namespace
}  // namespace datasystem::transport

int main(int count, char** arguments) { return datasystem::transport::Run(count, arguments); }
