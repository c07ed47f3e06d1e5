// What a KVClient does when the worker, the network or the process around it misbehaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <random>
#include <thread>

#include "client/scripted_worker.h"
#include "client/session.h"
#include "client/worker_report.h"
#include "datasystem/kv_client.h"

namespace datasystem::client {
namespace {

using proto::SessionMessage;
using testing::HasSubstr;

#define ASSERT_OK(expr) ASSERT_EQ((expr).ToString(), Status::OK().ToString())
#define EXPECT_OK(expr) EXPECT_EQ((expr).ToString(), Status::OK().ToString())

// Waited out by calls that get no answer, and enough for those that do, on a machine under load too.
constexpr int32_t kShortMs = 1000;

ConnectOptions To(uint16_t port, int32_t timeout_ms = 10000) {
  ConnectOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.connectTimeoutMs = timeout_ms;
  return options;
}

std::string Header(SessionMessage type, uint64_t request_id, uint32_t body_size, uint64_t payload_size) {
  const auto bytes = session::EncodeFrameHeader({.type = static_cast<uint16_t>(type),
                                                 .request_id = request_id,
                                                 .body_size = body_size,
                                                 .payload_size = payload_size});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string Body(proto::GetItem item) {
  proto::GetReply reply;
  reply.items.push_back(std::move(item));
  return reply.Encode();
}

// A get's answer that no real worker gives, and what the client must say about it.
struct BadAnswer {
  const char* name;
  std::function<void(const ScriptedRequest&)> answer;
  const char* reason;
};

void PrintTo(const BadAnswer& bad, std::ostream* out) { *out << bad.name; }

const BadAnswer kBadAnswers[] = {
    {"ForeignProtocol",
     [](const ScriptedRequest& r) { r.AnswerRaw("HTTP/1.1 400 Bad Request\r\nServer: other\r\n\r\n"); },
     "not this protocol"},
    {"BodyBeyondTheLimit",
     [](const ScriptedRequest& r) {
       r.AnswerRaw(Header(SessionMessage::kGetReply, r.request_id, session::kBodyMax + 1, 0));
     },
     "a body of 16777217 bytes"},
    {"AnotherRequestsAnswer",
     [](const ScriptedRequest& r) {
       r.AnswerRaw(Header(SessionMessage::kGetReply, r.request_id + 5, 0, 0));
     },
     "came to request"},
    {"AnotherType",
     [](const ScriptedRequest& r) { r.Answer(SessionMessage::kExistReply, ""); },
     "type 33 came instead of 21"},
    {"OkInsteadOfAnAnswer",
     [](const ScriptedRequest& r) { r.Answer(SessionMessage::kStatusReply, ""); },
     "OK came instead of an answer"},
    {"MalformedBody",
     [](const ScriptedRequest& r) { r.Answer(SessionMessage::kGetReply, "\xFF\xFF\xFF"); },
     "malformed get reply"},
    {"MalformedRefusal",
     [](const ScriptedRequest& r) { r.Answer(SessionMessage::kStatusReply, "\xFF\xFF\xFF"); },
     "malformed status reply"},
    {"BytesAfterTheAnswer",
     [](const ScriptedRequest& r) {
       const std::string body = Body({.status = Status(K_NOT_FOUND, "")});
       r.AnswerRaw(Header(SessionMessage::kGetReply, r.request_id, static_cast<uint32_t>(body.size()), 0) +
                   body + "more");
     },
     "bytes follow the answer"},
    {"TooFewItems",
     [](const ScriptedRequest& r) { r.Answer(SessionMessage::kGetReply, ""); },
     "0 items came for 1 keys"},
    {"ValueLargerThanThePayload",
     [](const ScriptedRequest& r) { r.Answer(SessionMessage::kGetReply, Body({.size = 10}), "123"); },
     "a value of 10 bytes in 3 bytes of payload"},
    {"PayloadLargerThanTheValue",
     [](const ScriptedRequest& r) { r.Answer(SessionMessage::kGetReply, Body({.size = 2}), "123"); },
     "1 bytes of payload too many"},
    {"EmptyValue",
     [](const ScriptedRequest& r) { r.Answer(SessionMessage::kGetReply, Body({.size = 0})); },
     "a value of 0 bytes"},
    {"ValueLargerThanTheMachine",
     [](const ScriptedRequest& r) {
       const uint64_t size = uint64_t{1} << 40;
       const std::string body = Body({.size = size});
       r.AnswerRaw(Header(SessionMessage::kGetReply, r.request_id, static_cast<uint32_t>(body.size()), size) +
                   body);
     },
     "more than this machine has"},
    {"UnknownSegment",
     [](const ScriptedRequest& r) {
       r.Answer(SessionMessage::kGetReply,
                Body({.size = 8, .pin_id = 1, .location = {.segment = 4, .offset = 0, .size = 8}}));
     },
     "no segment 4"},
    {"PlaceBeyondTheSegment",
     [](const ScriptedRequest& r) {
       r.Answer(SessionMessage::kGetReply,
                Body({.size = 8,
                      .pin_id = 1,
                      .location = {.segment = 3, .offset = ScriptedWorker::kSegmentBytes - 7, .size = 8}}));
     },
     "segment"},
    {"PlaceThatWrapsAround",
     [](const ScriptedRequest& r) {
       r.Answer(SessionMessage::kGetReply,
                Body({.size = 8, .pin_id = 1, .location = {.segment = 3, .offset = ~uint64_t{3}, .size = 8}}));
     },
     "segment"},
    {"SizeUnlikeThePlace",
     [](const ScriptedRequest& r) {
       r.Answer(SessionMessage::kGetReply,
                Body({.size = 9, .pin_id = 1, .location = {.segment = 3, .offset = 0, .size = 8}}));
     },
     "a value of 9 bytes in 8 bytes of memory"},
};

class BadAnswers : public testing::TestWithParam<BadAnswer> {};
INSTANTIATE_TEST_SUITE_P(All, BadAnswers, testing::ValuesIn(kBadAnswers),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(BadAnswers, AreRefusedWithTheReasonAndTheNextCallWorks) {
  ScriptedWorker worker;
  KVClient client(To(worker.port()));
  ASSERT_OK(client.Init());
  ASSERT_OK(client.Set("key", "value"));
  worker.SetScript([](const ScriptedRequest& request) {
    // Pins that never were: the worker ignores their release.
    if (request.type == SessionMessage::kRelease) return true;
    if (request.type != SessionMessage::kGet) return false;
    GetParam().answer(request);
    return true;
  });
  std::string text;
  const Status as_string = client.Get("key", text);
  EXPECT_EQ(as_string.GetCode(), K_RUNTIME_ERROR);
  EXPECT_THAT(as_string.GetMsg(), HasSubstr(GetParam().reason));
  EXPECT_THAT(as_string.GetMsg(), HasSubstr(worker.name()));
  EXPECT_EQ(text, "");
  Optional<ReadOnlyBuffer> view;
  EXPECT_EQ(client.Get("key", view).GetCode(), K_RUNTIME_ERROR);
  EXPECT_FALSE(view);

  // Their release may still be under way.
  worker.SetScript([](const ScriptedRequest& request) { return request.type == SessionMessage::kRelease; });
  ASSERT_OK(client.Get("key", text));
  EXPECT_EQ(text, "value");
}

TEST(KVClientFaults, RandomAnswersNeverDoHarm) {
  const uint64_t seed = std::random_device()();
  std::printf("seed %lu\n", seed);
  auto rng = std::make_shared<std::mt19937_64>(seed);
  ScriptedWorker worker;
  KVClient client(To(worker.port()));
  ASSERT_OK(client.Init());
  ASSERT_OK(client.Set("key", "value"));
  worker.SetScript([rng](const ScriptedRequest& request) {
    if (request.type == SessionMessage::kHello) return false;
    std::string bytes((*rng)() % 200, 0);
    for (char& byte : bytes) byte = static_cast<char>((*rng)());
    // Half of them in a frame that is right.
    if ((*rng)() % 2 == 0) {
      request.Answer(SessionMessage::kGetReply, bytes);
    } else {
      request.AnswerRaw(bytes);
    }
    request.HangUp();
    return true;
  });
  for (int i = 0; i < 100; ++i) {
    std::string text;
    Optional<ReadOnlyBuffer> view;
    EXPECT_TRUE(client.Get("key", text).IsError());
    EXPECT_TRUE(client.Get("key", view).IsError());
  }
  worker.SetScript(nullptr);
  std::string text;
  ASSERT_OK(client.Get("key", text));
}

TEST(KVClientFaults, MemoryAtAWrongPlaceIsNotWrittenTo) {
  for (const proto::Location location : {proto::Location{3, ScriptedWorker::kSegmentBytes - 100, 5000},
                                         proto::Location{9, 0, 5000}, proto::Location{3, 0, 4999}}) {
    ScriptedWorker worker;
    KVClient client(To(worker.port()));
    ASSERT_OK(client.Init());
    worker.SetScript([location](const ScriptedRequest& request) {
      if (request.type != SessionMessage::kCreate) return request.type == SessionMessage::kAbandon;
      request.Answer(SessionMessage::kCreateReply,
                     proto::CreateReply{.items = {{.buffer_id = 5, .location = location}}}.Encode());
      return true;
    });
    const Status status = client.Set("key", std::string(5000, 'x'));
    EXPECT_EQ(status.GetCode(), K_RUNTIME_ERROR);
    EXPECT_THAT(status.GetMsg(), HasSubstr("asked for 5000 bytes"));
    EXPECT_TRUE(worker.Eventually(
        [](const auto& state) { return state.requests.back().type == SessionMessage::kAbandon; }));
  }
}

TEST(KVClientFaults, ARefusalInsteadOfAnAnswerKeepsTheConnection) {
  ScriptedWorker worker;
  KVClient client(To(worker.port()));
  ASSERT_OK(client.Init());
  ASSERT_OK(client.HealthCheck());  // there is a connection for requests
  worker.SetScript([](const ScriptedRequest& request) {
    request.Answer(SessionMessage::kStatusReply,
                   proto::StatusReply{Status(K_SHUTTING_DOWN, "going away")}.Encode());
    return true;
  });
  std::string text;
  EXPECT_EQ(client.Get("key", text).GetCode(), K_SHUTTING_DOWN);
  worker.SetScript(nullptr);
  ASSERT_OK(client.HealthCheck());
  EXPECT_EQ(worker.state().connections_seen, 3u);  // two lifelines, the first over TCP, and one for requests
}

TEST(KVClientFaults, SilenceEndsAtTheDeadlineAndLateAnswersHarmNobody) {
  ScriptedWorker worker;
  KVClient client(To(worker.port(), kShortMs));
  ASSERT_OK(client.Init());
  ASSERT_OK(client.Set("key", std::string(5000, 'x')));
  Optional<ReadOnlyBuffer> view;
  ASSERT_OK(client.Get("key", view));
  worker.SetScript([](const ScriptedRequest& request) { return request.type == SessionMessage::kExist; });
  std::vector<bool> exists;
  for (int i = 0; i < 2; ++i) {
    const Status status = client.Exist({"key"}, exists);
    EXPECT_EQ(status.GetCode(), K_RPC_DEADLINE_EXCEEDED);
    EXPECT_THAT(status.GetMsg(), HasSubstr("worker " + worker.name() + " did not answer within 1000 ms"));
  }
  // The session, and the pin, live on.
  worker.SetScript(nullptr);
  const auto requests = worker.state().requests;
  const auto first = std::find_if(requests.begin(), requests.end(), [](const ScriptedRequest& request) {
    return request.type == SessionMessage::kExist;
  });
  ASSERT_NE(first, requests.end());
  first->Answer(SessionMessage::kExistReply, proto::ExistReply{.exists = {true}}.Encode());
  ASSERT_OK(client.Exist({"missing"}, exists));
  EXPECT_THAT(exists, testing::ElementsAre(false));
  EXPECT_EQ(worker.state().pins.size(), 1u);
  view.reset();
  EXPECT_TRUE(worker.Eventually([](const auto& state) { return state.pins.empty(); }));
}

TEST(KVClientFaults, APinIsReleasedEvenWhenTimeOutsHaveUsedUpAllConnections) {
  ScriptedWorker worker;
  KVClient client(To(worker.port(), kShortMs));
  ASSERT_OK(client.Init());
  ASSERT_OK(client.Set("key", std::string(5000, 'x')));
  Optional<ReadOnlyBuffer> view;
  ASSERT_OK(client.Get("key", view));
  worker.SetScript([](const ScriptedRequest& request) { return request.type == SessionMessage::kHealth; });
  EXPECT_EQ(client.HealthCheck().GetCode(), K_RPC_DEADLINE_EXCEEDED);
  view.reset();
  EXPECT_TRUE(worker.Eventually([](const auto& state) { return state.pins.empty(); }));
}

TEST(KVClientFaults, AnAnswerThatStopsHalfWayEndsAtTheDeadline) {
  ScriptedWorker worker({.shared_memory = false});
  KVClient client(To(worker.port(), kShortMs));
  ASSERT_OK(client.Init());
  worker.SetScript([](const ScriptedRequest& request) {
    if (request.type != SessionMessage::kGet) return false;
    const std::string body = Body({.size = 1000});
    request.AnswerRaw(
        Header(SessionMessage::kGetReply, request.request_id, static_cast<uint32_t>(body.size()), 1000) +
        body + "only this");
    return true;
  });
  std::string text;
  EXPECT_EQ(client.Get("key", text).GetCode(), K_RPC_DEADLINE_EXCEEDED);
  EXPECT_EQ(text, "");
  ASSERT_OK(client.HealthCheck());
}

TEST(KVClientFaults, AWorkerThatDoesNotReadIsGivenUpAtTheDeadline) {
  ScriptedWorker worker({.shared_memory = false});
  KVClient client(To(worker.port(), kShortMs));
  ASSERT_OK(client.Init());
  ASSERT_OK(client.HealthCheck());  // there is a connection for requests
  std::promise<void> go_on;
  worker.SetScript([done = go_on.get_future().share()](const ScriptedRequest& request) {
    request.Answer(SessionMessage::kStatusReply, "");
    done.wait();  // and read nothing more from this connection
    return true;
  });
  ASSERT_OK(client.HealthCheck());
  const Status status = client.Set("key", std::string(32 << 20, 'x'));
  EXPECT_EQ(status.GetCode(), K_RPC_DEADLINE_EXCEEDED) << status.ToString();
  go_on.set_value();
}

TEST(KVClientFaults, AConnectionThatEndsDuringTheCallIsSaidAndTheNextCallConnectsAgain) {
  for (const bool half_an_answer : {false, true}) {
    ScriptedWorker worker;
    KVClient client(To(worker.port()));
    ASSERT_OK(client.Init());
    ASSERT_OK(client.Set("key", "value"));
    worker.SetScript([half_an_answer](const ScriptedRequest& request) {
      if (request.type != SessionMessage::kGet) return false;
      if (half_an_answer) request.AnswerRaw(Header(SessionMessage::kGetReply, request.request_id, 50, 0));
      request.HangUp();
      return true;
    });
    std::string text;
    const Status status = client.Get("key", text);
    EXPECT_EQ(status.GetCode(), K_CLIENT_WORKER_DISCONNECT);
    EXPECT_THAT(status.GetMsg(), HasSubstr("worker " + worker.name() + " closed the connection"));
    worker.SetScript(nullptr);
    ASSERT_OK(client.Get("key", text));
    EXPECT_EQ(text, "value");
  }
}

TEST(KVClientFaults, AWorkerThatIsGoneIsSaidAndOneThatComesBackIsUsedAgain) {
  auto worker = std::make_unique<ScriptedWorker>();
  const uint16_t port = worker->port();
  KVClient client(To(port, kShortMs));
  ASSERT_OK(client.Init());
  const std::string value(5000, 'x');
  ASSERT_OK(client.Set("key", value));
  Optional<ReadOnlyBuffer> view;
  ASSERT_OK(client.Get("key", view));
  std::shared_ptr<Buffer> buffer;
  ASSERT_OK(client.Create("other", 5000, {}, buffer));
  worker.reset();

  const Status status = client.HealthCheck();
  EXPECT_EQ(status.GetCode(), K_RPC_UNAVAILABLE);
  EXPECT_THAT(status.GetMsg(), HasSubstr("cannot connect to worker 127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(status.GetMsg(), HasSubstr("is a worker running there?"));

  worker = std::make_unique<ScriptedWorker>(ScriptedWorkerOptions{.port = port});
  ASSERT_OK(client.HealthCheck());
  // What was obtained before is still there to be read; an unpublished buffer is lost.
  EXPECT_EQ(std::memcmp(view->ImmutableData(), value.data(), value.size()), 0);
  const Status late = client.Set(buffer);
  EXPECT_EQ(late.GetCode(), K_INVALID);
  EXPECT_THAT(late.GetMsg(), HasSubstr("create a new buffer"));
  view.reset();
  buffer.reset();
  ASSERT_OK(client.Set("key", value));
  EXPECT_EQ(worker->Count(SessionMessage::kRelease), 0u);
  EXPECT_EQ(worker->Count(SessionMessage::kAbandon), 0u);
}

TEST(KVClientFaults, ACallWaitsForAWorkerThatIsBeingStartedAgain) {
  auto worker = std::make_unique<ScriptedWorker>();
  const uint16_t port = worker->port();
  KVClient client(To(port));
  ASSERT_OK(client.Init());
  ASSERT_OK(client.HealthCheck());
  worker.reset();
  std::vector<std::thread> calls;
  std::atomic<int> served = 0;
  for (int i = 0; i < 4; ++i) calls.emplace_back([&] { served += client.HealthCheck().IsOk() ? 1 : 0; });
  worker = std::make_unique<ScriptedWorker>(ScriptedWorkerOptions{.port = port});
  for (std::thread& call : calls) call.join();
  EXPECT_EQ(served, 4);
}

TEST(KVClientFaults, NobodyListeningIsSaidAtOnce) {
  uint16_t port = 0;
  { port = ScriptedWorker().port(); }
  KVClient client(To(port, 60000));
  const Status status = client.Init();
  EXPECT_EQ(status.GetCode(), K_RPC_UNAVAILABLE);
  EXPECT_THAT(status.GetMsg(), HasSubstr("Connection refused"));
  EXPECT_EQ(client.HealthCheck().GetCode(), K_NOT_READY);
  EXPECT_EQ(FetchWorkerReport("127.0.0.1", port, std::chrono::seconds(5)).status().GetCode(),
            K_RPC_UNAVAILABLE);
}

TEST(KVClientHandshake, StaysOnTcpWhenTheSocketBelongsToAnotherWorker) {
  ScriptedWorker worker;
  worker.SetGreetingScript([](bool over_unix, proto::HelloReply& reply, std::vector<int>&) {
    if (over_unix) reply.worker_incarnation = 78;
  });
  KVClient client(To(worker.port()));
  ASSERT_OK(client.Init());
  ASSERT_OK(client.Set("key", std::string(5000, 'x')));
  EXPECT_FALSE(worker.state().requests.back().over_unix);
  EXPECT_EQ(worker.state().requests.back().payload.size(), 5000u);
}

TEST(KVClientHandshake, StaysOnTcpWhenTheSocketCannotBeReached) {
  for (const std::string& path : {std::string("/nonexistent/socket"), std::string(200, 'p')}) {
    ScriptedWorker worker;
    worker.SetGreetingScript(
        [&path](bool, proto::HelloReply& reply, std::vector<int>&) { reply.unix_socket_path = path; });
    KVClient client(To(worker.port()));
    ASSERT_OK(client.Init());
    ASSERT_OK(client.Set("key", std::string(5000, 'x')));
    EXPECT_EQ(worker.state().unix_connections_seen, 0u);
  }
}

TEST(KVClientHandshake, RefusesWhatAWorkerMustNotSayAndWhatItCannotDo) {
  const struct {
    std::function<void(bool, proto::HelloReply&, std::vector<int>&)> greeting;
    StatusCode code;
    const char* reason;
  } cases[] = {
      {[](bool, proto::HelloReply& reply, std::vector<int>&) {
         reply.status = Status(K_NOT_READY, "200 clients are the limit (max_client_num)");
       },
       K_NOT_READY, "200 clients are the limit"},
      {[](bool, proto::HelloReply& reply, std::vector<int>&) { reply.protocol = 3; },
       K_CLIENT_WORKER_VERSION_MISMATCH, "speaks protocol 3"},
      {[](bool, proto::HelloReply& reply, std::vector<int>&) { reply.session_id = 0; }, K_RUNTIME_ERROR,
       "session has no id"},
      {[](bool over_unix, proto::HelloReply&, std::vector<int>& fds) {
         if (over_unix) fds.push_back(fds[0]);
       },
       K_RUNTIME_ERROR, "2 descriptors came for 1 segments"},
      {[](bool, proto::HelloReply&, std::vector<int>& fds) { fds.clear(); }, K_RUNTIME_ERROR,
       "0 descriptors came for 1 segments"},
      {[](bool over_unix, proto::HelloReply& reply, std::vector<int>&) {
         if (over_unix) reply.segments[0].size_bytes *= 2;
       },
       K_RUNTIME_ERROR, "cannot map segment 3"},
      {[](bool over_unix, proto::HelloReply& reply, std::vector<int>& fds) {
         if (!over_unix) return;
         for (int i = 0; i < 2; ++i) {
           reply.segments.push_back({.size_bytes = 4096, .kind = proto::SegmentKind::kMarks});
           fds.push_back(fds[0]);
         }
       },
       K_RUNTIME_ERROR, "two segments of kind 2"},
  };
  for (const auto& c : cases) {
    ScriptedWorker worker;
    worker.SetGreetingScript(c.greeting);
    KVClient client(To(worker.port()));
    const Status status = client.Init();
    EXPECT_EQ(status.GetCode(), c.code) << status.ToString();
    EXPECT_THAT(status.GetMsg(), HasSubstr(c.reason));
  }
}

TEST(KVClientHandshake, ASilentWorkerIsGivenUpAtTheConnectTimeout) {
  ScriptedWorker worker;
  worker.SetScript([](const ScriptedRequest&) { return true; });
  KVClient client(To(worker.port(), 150));
  EXPECT_THAT(client.Init().GetMsg(), HasSubstr("did not answer within 150 ms"));
}

TEST(KVClientPool, ThreadsBeyondTheLimitOfConnectionsWaitForOne) {
  ScriptedWorker worker;
  const Deadline deadline(std::chrono::seconds(30));
  auto session = Session::Open({.host = "127.0.0.1", .port = worker.port()}, deadline);
  ASSERT_TRUE(session.ok());
  std::vector<Session::Lease> leases;
  for (size_t i = 0; i < Session::kConnectionsMax; ++i) {
    auto lease = (*session)->Acquire(deadline);
    ASSERT_TRUE(lease.ok()) << lease.status().ToString();
    leases.push_back(std::move(*lease));
  }
  EXPECT_THAT((*session)->Acquire(Deadline(std::chrono::milliseconds(20))).status().GetMsg(),
              HasSubstr("all 128 connections"));
  Connection* const expected = leases.back().operator->();
  std::thread waiter([&] {
    auto lease = (*session)->Acquire(deadline);
    EXPECT_TRUE(lease.ok() && lease->operator->() == expected);
  });
  leases.pop_back();
  waiter.join();
}

// Runs `work` in a forked child; true if it returned true.
bool InChild(const std::function<bool()>& work) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

TEST(KVClientFork, AChildGetsAClearErrorAndNeverTouchesTheParentsSession) {
  ScriptedWorker worker;
  auto client = std::make_unique<KVClient>(To(worker.port()));
  ASSERT_OK(client->Init());
  ASSERT_OK(client->Set("key", std::string(5000, 'x')));
  Optional<ReadOnlyBuffer> view;
  ASSERT_OK(client->Get("key", view));
  std::shared_ptr<Buffer> buffer;
  ASSERT_OK(client->Create("other", 5000, {}, buffer));
  const size_t before = worker.state().requests.size();

  const std::string expected = "this client was created in process " + std::to_string(::getpid()) +
                               "; create a new KVClient after fork";
  EXPECT_TRUE(InChild([&] {
    std::string text;
    for (const Status& status : {client->Get("key", text), client->Set("key", "v"), client->Set(buffer),
                                 client->Init(), client->ShutDown(), client->HealthCheck()}) {
      if (status.GetCode() != K_RUNTIME_ERROR || status.GetMsg().find(expected) != 0) return false;
    }
    view.reset();
    buffer.reset();
    client.reset();
    return true;
  }));
  ASSERT_OK(client->HealthCheck());
  EXPECT_EQ(worker.state().requests.size(), before + 1);
  EXPECT_EQ(worker.state().pins.size(), 1u);
  ASSERT_OK(client->Set(buffer));
}

TEST(KVClientFork, AChildMayMakeAClientOfItsOwn) {
  ScriptedWorker worker;
  KVClient client(To(worker.port()));
  ASSERT_OK(client.Init());
  EXPECT_TRUE(InChild([&] {
    KVClient own(To(worker.port()));
    std::string text;
    return own.Init().IsOk() && own.Set("key", "value").IsOk() && own.Get("key", text).IsOk() &&
           text == "value";
  }));
  std::string text;
  ASSERT_OK(client.Get("key", text));
  EXPECT_EQ(text, "value");
}

}  // namespace
}  // namespace datasystem::client
