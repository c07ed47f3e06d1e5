// What a KVClient does with a worker that behaves.
#include "datasystem/kv_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "client/scripted_worker.h"
#include "client/worker_report.h"
#include "datasystem/context/context.h"

namespace datasystem::client {
namespace {

using proto::SessionMessage;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

#define ASSERT_OK(expr) ASSERT_EQ((expr).ToString(), Status::OK().ToString())
#define EXPECT_OK(expr) EXPECT_EQ((expr).ToString(), Status::OK().ToString())

const char kTraced[] =
    ", traceId: [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$";

ConnectOptions To(const ScriptedWorker& worker) {
  ConnectOptions options;
  options.host = "127.0.0.1";
  options.port = worker.port();
  options.connectTimeoutMs = 10000;
  return options;
}

std::string Pattern(size_t size) {
  std::string bytes(size, 0);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
  return bytes;
}

std::string Content(const ReadOnlyBuffer& buffer) {
  return {static_cast<const char*>(buffer.ImmutableData()), static_cast<size_t>(buffer.GetSize())};
}

bool NoPins(const ScriptedWorker::State& state) { return state.pins.empty(); }

// The same over shared memory and over TCP.
class KVClientForms : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { ASSERT_OK(client_.Init()); }

  ScriptedWorker worker_{{.shared_memory = GetParam()}};
  KVClient client_{To(worker_)};
};
INSTANTIATE_TEST_SUITE_P(SharedMemoryAndTcp, KVClientForms, testing::Bool());

TEST_P(KVClientForms, GetReturnsWhatSetStoredInEveryForm) {
  for (const size_t size : {1, 1023, 1024, 100'000, 8 << 20}) {
    const std::string value = Pattern(size);
    ASSERT_OK(client_.Set("key", value));
    std::string text;
    ASSERT_OK(client_.Get("key", text));
    EXPECT_TRUE(text == value) << size;
    Optional<ReadOnlyBuffer> read_only;
    ASSERT_OK(client_.Get("key", read_only));
    EXPECT_TRUE(Content(*read_only) == value) << size;
    Optional<Buffer> buffer;
    ASSERT_OK(client_.Get("key", buffer));
    ASSERT_EQ(buffer->GetSize(), static_cast<int64_t>(size));
    EXPECT_EQ(std::memcmp(buffer->ImmutableData(), value.data(), size), 0);
  }
}

TEST_P(KVClientForms, ABufferFilledInPlaceIsStoredWhenSet) {
  for (const size_t size : {10, 100'000}) {
    const std::string value = Pattern(size);
    std::shared_ptr<Buffer> buffer;
    ASSERT_OK(client_.Create("key" + std::to_string(size), size, {}, buffer));
    ASSERT_OK(buffer->WLatch());
    ASSERT_OK(buffer->MemoryCopy(value.data(), size / 2));
    std::memcpy(static_cast<char*>(buffer->MutableData()) + size / 2, value.data() + size / 2,
                size - size / 2);
    ASSERT_OK(buffer->UnWLatch());
    ASSERT_OK(client_.Set(buffer));
    std::string text;
    ASSERT_OK(client_.Get("key" + std::to_string(size), text));
    EXPECT_TRUE(text == value);
    // It is spent now.
    EXPECT_EQ(buffer->GetSize(), static_cast<int64_t>(size));
    EXPECT_EQ(buffer->MutableData(), nullptr);
    EXPECT_EQ(buffer->ImmutableData(), nullptr);
    EXPECT_EQ(buffer->MemoryCopy("x", 1).GetCode(), K_INVALID);
    EXPECT_EQ(client_.Set(buffer).GetCode(), K_OC_ALREADY_SEALED);
  }
}

TEST_P(KVClientForms, BatchesKeepTheOrderAndLeaveOutWhatIsMissing) {
  const std::string large = Pattern(5000);
  ASSERT_OK(client_.Set("small", "value"));
  ASSERT_OK(client_.Set("large", large));
  std::vector<std::string> texts{"left over"};
  ASSERT_OK(client_.Get({"small", "missing", "large", "small"}, texts));
  EXPECT_THAT(texts, ElementsAre("value", "", large, "value"));
  std::vector<Optional<ReadOnlyBuffer>> views;
  ASSERT_OK(client_.Get({"missing", "large", "small"}, views));
  ASSERT_EQ(views.size(), 3u);
  EXPECT_FALSE(views[0]);
  EXPECT_TRUE(Content(*views[1]) == large);
  EXPECT_EQ(Content(*views[2]), "value");
  std::vector<Optional<Buffer>> buffers;
  ASSERT_OK(client_.Get({"large", "missing"}, buffers));
  EXPECT_EQ(buffers[0]->GetSize(), 5000);
  EXPECT_FALSE(buffers[1]);
}

TEST_P(KVClientForms, GetOfMissingKeysOnlyFailsWithTheWordsThatProgramsLookFor) {
  std::string text = "old";
  const Status status = client_.Get("missing", text);
  EXPECT_EQ(status.GetCode(), K_NOT_FOUND);
  EXPECT_THAT(status.ToString(),
              testing::ContainsRegex("^code: \\[Key not found\\], msg: \\[Cannot get objects from worker, "
                                     "traceId: [-0-9a-f]{36}\\]$"));
  EXPECT_EQ(text, "");
  std::vector<std::string> texts{"untouched"};
  EXPECT_EQ(client_.Get({"a", "b"}, texts).GetCode(), K_NOT_FOUND);
  EXPECT_THAT(texts, ElementsAre("untouched"));
  Optional<ReadOnlyBuffer> view;
  EXPECT_EQ(client_.Get("missing", view).GetCode(), K_NOT_FOUND);
  EXPECT_FALSE(view);
}

TEST_P(KVClientForms, DelAndExistAnswerForEachKey) {
  ASSERT_OK(client_.Set("a", "1"));
  std::vector<bool> exists;
  ASSERT_OK(client_.Exist({"a", "b"}, exists));
  EXPECT_THAT(exists, ElementsAre(true, false));
  ASSERT_OK(client_.Exist({"b"}, exists));
  EXPECT_THAT(exists, ElementsAre(false));

  std::vector<std::string> failed{"left over"};
  ASSERT_OK(client_.Del({"a", "stubborn", "b"}, failed));
  EXPECT_THAT(failed, ElementsAre("stubborn"));
  const Status status = client_.Del({"stubborn"}, failed);
  EXPECT_EQ(status.GetCode(), K_TRY_AGAIN);
  EXPECT_THAT(status.GetMsg(), HasSubstr("not now"));
  ASSERT_OK(client_.Del("a"));
  ASSERT_OK(client_.Exist({"a"}, exists));
  EXPECT_THAT(exists, ElementsAre(false));
}

TEST_P(KVClientForms, MSetStoresTheFirstOfADuplicateAndReportsIt) {
  std::vector<std::string> failed;
  ASSERT_OK(client_.MSet({"a", "b", "a"}, {"1", "2", "3"}, failed));
  EXPECT_THAT(failed, ElementsAre("a"));
  std::vector<std::string> texts;
  ASSERT_OK(client_.Get({"a", "b"}, texts));
  EXPECT_THAT(texts, ElementsAre("1", "2"));
  EXPECT_EQ(client_.MSet({"a", "b"}, {"1"}, failed).GetCode(), K_INVALID);
}

TEST_P(KVClientForms, MSetWithNxLeavesExistingKeysAloneAndCountsThemAsSet) {
  ASSERT_OK(client_.Set("a", "old"));
  std::vector<std::string> failed;
  ASSERT_OK(client_.MSet({"a", "b"}, {"1", "2"}, failed, {.existence = ExistenceOpt::NX}));
  EXPECT_THAT(failed, ElementsAre());
  std::vector<std::string> texts;
  ASSERT_OK(client_.Get({"a", "b"}, texts));
  EXPECT_THAT(texts, ElementsAre("old", "2"));
}

TEST_P(KVClientForms, MSetStoresValuesOfAllSizesTogetherAndAnIllegalKeyFailsAlone) {
  const std::vector<std::string> values{Pattern(10), Pattern(5000), Pattern(20), Pattern(1024)};
  std::vector<std::string> failed;
  ASSERT_OK(client_.MSet({"a", "b", "no good", "d"}, {values[0], values[1], values[2], values[3]}, failed));
  EXPECT_THAT(failed, ElementsAre("no good"));
  EXPECT_EQ(worker_.Count(SessionMessage::kSet), 1u);
  std::vector<std::string> texts;
  ASSERT_OK(client_.Get({"a", "b", "no good", "d"}, texts));
  EXPECT_THAT(texts, ElementsAre(values[0], values[1], "", values[3]));
  EXPECT_TRUE(worker_.state().unpublished.empty());
}

TEST_P(KVClientForms, MSetTxSetsAllOrNothing) {
  const MSetParam nx{.existence = ExistenceOpt::NX};
  const std::string large = Pattern(5000);
  ASSERT_OK(client_.MSetTx({"a", "b"}, {"1", large}, nx));
  EXPECT_EQ(client_.MSetTx({"c", "b"}, {large, "2"}, nx).GetCode(), K_OC_KEY_ALREADY_EXIST);
  std::vector<std::string> texts;
  ASSERT_OK(client_.Get({"a", "b", "c"}, texts));
  EXPECT_THAT(texts, ElementsAre("1", large, ""));
  EXPECT_TRUE(worker_.Eventually([](const auto& state) { return state.unpublished.empty(); }));
}

TEST_P(KVClientForms, BuffersMadeTogetherAreSetTogether) {
  const std::vector<uint64_t> sizes{10, 5000, 100'000};
  std::vector<std::shared_ptr<Buffer>> buffers;
  ASSERT_OK(client_.MCreate({"a", "b", "c"}, sizes, {.ttlSecond = 9}, buffers));
  ASSERT_EQ(buffers.size(), 3u);
  for (size_t i = 0; i < 3; ++i) ASSERT_OK(buffers[i]->MemoryCopy(Pattern(sizes[i]).data(), sizes[i]));
  ASSERT_OK(client_.MSet(buffers));
  EXPECT_EQ(worker_.Count(SessionMessage::kSet), 1u);
  EXPECT_EQ(proto::SetRequest::Decode(worker_.state().requests.back().body)->param.ttl_second, 9u);
  std::vector<std::string> texts;
  ASSERT_OK(client_.Get({"a", "b", "c"}, texts));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(texts[i] == Pattern(sizes[i])) << i;
  EXPECT_EQ(client_.MSet(buffers).GetCode(), K_OC_ALREADY_SEALED);
  EXPECT_EQ(client_.MSet({nullptr}).GetCode(), K_INVALID);
}

TEST_P(KVClientForms, ReadReturnsPartsClippedToTheEnd) {
  const std::string value = Pattern(10'000);
  ASSERT_OK(client_.Set("a", value));
  ASSERT_OK(client_.Set("b", "small"));
  std::vector<Optional<ReadOnlyBuffer>> views;
  ASSERT_OK(client_.Read({{"a", 100, 2000}, {"missing"}, {"b", 2, 100}}, views));
  ASSERT_EQ(views.size(), 3u);
  EXPECT_TRUE(Content(*views[0]) == value.substr(100, 2000));
  EXPECT_FALSE(views[1]);
  EXPECT_EQ(Content(*views[2]), "all");
  ASSERT_OK(client_.Read({{"a", 9000}}, views));
  EXPECT_TRUE(Content(*views[0]) == value.substr(9000));
  EXPECT_EQ(client_.Read({{"a", 10'000, 1}}, views).GetCode(), K_OUT_OF_RANGE);
}

TEST_P(KVClientForms, ExpireAndQuerySizeAnswerForEachKey) {
  ASSERT_OK(client_.Set("a", "12345"));
  std::vector<std::string> failed;
  ASSERT_OK(client_.Expire({"a", "missing", "b d"}, 7, failed));
  EXPECT_THAT(failed, ElementsAre("missing", "b d"));
  EXPECT_EQ(proto::ExpireRequest::Decode(worker_.state().requests.back().body)->ttl_second, 7u);
  EXPECT_EQ(client_.Expire({"missing"}, 0, failed).GetCode(), K_NOT_FOUND);
  std::vector<uint64_t> sizes;
  ASSERT_OK(client_.QuerySize({"missing", "a"}, sizes));
  EXPECT_THAT(sizes, ElementsAre(0u, 5u));
  EXPECT_EQ(client_.QuerySize({"missing"}, sizes).GetCode(), K_NOT_FOUND);
}

TEST_P(KVClientForms, BatchesBeyondOneMessageAreSplitAndKeepTheOrder) {
  constexpr size_t kCount = 20'001;
  std::vector<std::string> keys, failed, texts;
  for (size_t i = 0; i < kCount; ++i) keys.push_back(std::to_string(i));
  const std::vector<StringView> vals(keys.begin(), keys.end());
  ASSERT_OK(client_.MSet(keys, vals, failed));
  EXPECT_TRUE(failed.empty());
  ASSERT_OK(client_.Get(keys, texts));
  EXPECT_TRUE(texts == keys);
  std::vector<uint64_t> sizes;
  ASSERT_OK(client_.QuerySize(keys, sizes));
  EXPECT_EQ(sizes.back(), 5u);
  ASSERT_OK(client_.Del(keys, failed));
  EXPECT_TRUE(failed.empty());
  std::vector<bool> exists;
  ASSERT_OK(client_.Exist(keys, exists));
  EXPECT_EQ(exists, std::vector<bool>(kCount, false));
  for (const SessionMessage type : {SessionMessage::kSet, SessionMessage::kGet, SessionMessage::kSizes,
                                    SessionMessage::kDelete, SessionMessage::kExist}) {
    EXPECT_EQ(worker_.Count(type), 3u) << static_cast<int>(type);
  }
}

TEST_P(KVClientForms, ManyThreadsShareOneClient) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t, &wrong] {
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(t) + ":" + std::to_string(i % 5);
        const std::string value = key + Pattern(i % 2 == 0 ? 100 : 3000);
        std::string text;
        Optional<ReadOnlyBuffer> view;
        if (client_.Set(key, value).IsError() || client_.Get(key, text).IsError() || text != value ||
            client_.Get(key, view).IsError() || Content(*view) != value) {
          ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(worker_.Eventually(NoPins));
  // The lifeline over TCP and, if there is one, over the Unix socket; and one a thread.
  EXPECT_LE(worker_.state().connections_seen, 8u + 2u);
}

class KVClientTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(client_.Init()); }

  ScriptedWorker worker_;
  KVClient client_{To(worker_)};
};

TEST_F(KVClientTest, MovesToTheUnixSocketAndClosesTheTcpConnection) {
  ASSERT_OK(client_.Set("key", Pattern(5000)));
  // The lifeline, and one for requests.
  EXPECT_TRUE(worker_.Eventually([](const auto& state) { return state.connections_open == 2; }));
  EXPECT_EQ(worker_.state().unix_connections_seen, 2u);
  for (const ScriptedRequest& request : worker_.state().requests) {
    EXPECT_TRUE(request.over_unix || request.type == SessionMessage::kHello);
    EXPECT_EQ(request.payload, "");
  }
}

TEST_F(KVClientTest, PassesOnTheParametersOfASet) {
  const SetParam param{.writeMode = WriteMode::NONE_L2_CACHE_EVICT, .ttlSecond = 17,
                       .existence = ExistenceOpt::NX};
  ASSERT_OK(client_.Set("small", "v", param));
  ASSERT_OK(client_.Set("large", Pattern(5000), param));
  const auto state = worker_.state();
  const auto set = proto::SetRequest::Decode(state.requests[state.requests.size() - 3].body);
  const auto publish = proto::SetRequest::Decode(state.requests.back().body);
  EXPECT_NE(publish->items.front().buffer_id, 0u);
  for (const proto::SetParam& sent : {set->param, publish->param}) {
    EXPECT_EQ(sent.write_mode, 3u);
    EXPECT_EQ(sent.ttl_second, 17u);
    EXPECT_EQ(sent.existence, 1u);
  }
  // The worker gives up first, and so can say why.
  EXPECT_LT(set->timeout_ms, 10000u);
  EXPECT_GT(set->timeout_ms, 9000u);
}

TEST_F(KVClientTest, WaitsForKeysOnTopOfTheRequestTimeout) {
  std::string text;
  EXPECT_EQ(client_.Get("missing", text, 5000).GetCode(), K_NOT_FOUND);
  const auto get = proto::GetRequest::Decode(worker_.state().requests.back().body);
  EXPECT_EQ(get->sub_timeout_ms, 5000u);
  EXPECT_GT(get->timeout_ms, 14000u);
  EXPECT_EQ(client_.Get("key", text, -1).GetCode(), K_INVALID);
}

TEST_F(KVClientTest, HoldsThePinExactlyAsLongAsABufferOrItsCopyLives) {
  ASSERT_OK(client_.Set("key", Pattern(5000)));
  Optional<ReadOnlyBuffer> view;
  ASSERT_OK(client_.Get("key", view));
  Optional<ReadOnlyBuffer> copy = view;
  view.reset();
  ASSERT_OK(client_.HealthCheck());  // whatever was sent before it has arrived
  EXPECT_EQ(worker_.state().pins.size(), 1u);
  copy.reset();
  EXPECT_TRUE(worker_.Eventually(NoPins));
}

TEST_F(KVClientTest, StringsAndFailedBatchesLeaveNoPin) {
  ASSERT_OK(client_.Set("key", Pattern(5000)));
  std::string text;
  ASSERT_OK(client_.Get("key", text));
  std::vector<Optional<Buffer>> buffers;
  ASSERT_OK(client_.Get({"key", "key", "missing"}, buffers));
  EXPECT_EQ(worker_.state().pins.size(), 2u);
  buffers.clear();
  EXPECT_TRUE(worker_.Eventually(NoPins));
}

TEST_F(KVClientTest, ABufferOutlivesShutDownAndTheClient) {
  const std::string value = Pattern(5000);
  Optional<ReadOnlyBuffer> view;
  {
    KVClient other(To(worker_));
    ASSERT_OK(other.Init());
    ASSERT_OK(other.Set("key", value));
    ASSERT_OK(other.Get("key", view));
    ASSERT_OK(other.ShutDown());
    std::string text;
    EXPECT_EQ(other.Get("key", text).GetCode(), K_NOT_READY);
  }
  EXPECT_EQ(worker_.state().pins.size(), 1u);
  EXPECT_TRUE(Content(*view) == value);
  view.reset();
  EXPECT_TRUE(worker_.Eventually(NoPins));
  // The other client, which has not asked anything, has its lifeline only.
  EXPECT_TRUE(worker_.Eventually([](const auto& state) { return state.connections_open == 1; }));
}

TEST_F(KVClientTest, AbandonsABufferThatIsDestroyedUnpublished) {
  std::shared_ptr<Buffer> buffer;
  ASSERT_OK(client_.Create("key", 5000, {}, buffer));
  EXPECT_EQ(worker_.state().unpublished.size(), 1u);
  buffer.reset();
  EXPECT_TRUE(worker_.Eventually([](const auto& state) { return state.unpublished.empty(); }));
  EXPECT_EQ(worker_.Count(SessionMessage::kAbandon), 1u);
  std::string text;
  EXPECT_EQ(client_.Get("key", text).GetCode(), K_NOT_FOUND);
}

TEST_F(KVClientTest, ASetThatTheWorkerRefusesAbandonsItsMemoryAndPassesOnTheReason) {
  worker_.SetScript([](const ScriptedRequest& request) {
    if (request.type != SessionMessage::kSet) return false;
    request.Answer(SessionMessage::kStatusReply,
                   proto::StatusReply{Status(K_OC_KEY_ALREADY_EXIST, "key exists")}.Encode());
    return true;
  });
  const Status status = client_.Set("key", Pattern(5000), {.existence = ExistenceOpt::NX});
  EXPECT_EQ(status.GetCode(), K_OC_KEY_ALREADY_EXIST);
  EXPECT_THAT(status.GetMsg(), testing::ContainsRegex(std::string("^key exists") + kTraced));
  EXPECT_TRUE(worker_.Eventually([](const auto& state) { return state.unpublished.empty(); }));
}

TEST_F(KVClientTest, ABufferWhosePublicationFailedCanBeTriedAgain) {
  std::shared_ptr<Buffer> buffer;
  ASSERT_OK(client_.Create("key", 5000, {}, buffer));
  ASSERT_OK(buffer->MemoryCopy(Pattern(5000).data(), 5000));
  worker_.SetScript([](const ScriptedRequest& request) {
    if (request.type != SessionMessage::kSet) return false;
    request.Answer(SessionMessage::kStatusReply,
                   proto::StatusReply{Status(K_TRY_AGAIN, "the ring changes")}.Encode());
    return true;
  });
  EXPECT_EQ(client_.Set(buffer).GetCode(), K_TRY_AGAIN);
  worker_.SetScript(nullptr);
  ASSERT_OK(client_.Set(buffer));
  std::string text;
  ASSERT_OK(client_.Get("key", text));
  EXPECT_TRUE(text == Pattern(5000));
}

TEST_F(KVClientTest, OutOfMemoryOfTheWorkerPassesThrough) {
  worker_.SetScript([](const ScriptedRequest& request) {
    if (request.type != SessionMessage::kCreate) return false;
    request.Answer(SessionMessage::kCreateReply,
                   proto::CreateReply{.items = {{.status = Status(K_OUT_OF_MEMORY, "no 5000 bytes")}}}.Encode());
    return true;
  });
  EXPECT_EQ(client_.Set("key", Pattern(5000)).GetCode(), K_OUT_OF_MEMORY);
  std::shared_ptr<Buffer> buffer;
  EXPECT_EQ(client_.Create("key", 5000, {}, buffer).GetCode(), K_OUT_OF_MEMORY);
  EXPECT_EQ(buffer, nullptr);
}

TEST_F(KVClientTest, BuffersFromGetAreNotWritable) {
  ASSERT_OK(client_.Set("key", "value"));
  Optional<Buffer> buffer;
  ASSERT_OK(client_.Get("key", buffer));
  EXPECT_EQ(buffer->MutableData(), nullptr);
  EXPECT_EQ(buffer->MemoryCopy("x", 1).GetCode(), K_INVALID);
  EXPECT_EQ(client_.Set(std::make_shared<Buffer>(std::move(*buffer))).GetCode(), K_INVALID);
  EXPECT_EQ(client_.Set(std::shared_ptr<Buffer>()).GetCode(), K_INVALID);
}

TEST_F(KVClientTest, MemoryCopyAndLatchesKnowTheirLimits) {
  std::shared_ptr<Buffer> buffer;
  ASSERT_OK(client_.Create("key", 10, {}, buffer));
  EXPECT_EQ(buffer->MemoryCopy("12345678901", 11).GetCode(), K_INVALID);
  EXPECT_EQ(buffer->UnWLatch().GetCode(), K_INVALID);
  EXPECT_EQ(buffer->UnRLatch().GetCode(), K_INVALID);
  ASSERT_OK(buffer->RLatch());
  ASSERT_OK(buffer->RLatch());
  EXPECT_EQ(buffer->WLatch(0).GetCode(), K_TRY_AGAIN);
  ASSERT_OK(buffer->UnRLatch());
  ASSERT_OK(buffer->UnRLatch());
  ASSERT_OK(buffer->WLatch(~uint64_t{0}));
  EXPECT_EQ(buffer->RLatch(0).GetCode(), K_TRY_AGAIN);
}

TEST_F(KVClientTest, RefusesIllegalCallsWithoutAskingTheWorker) {
  const size_t before = worker_.state().requests.size();
  std::string text;
  std::vector<std::string> texts;
  std::vector<bool> exists;
  std::shared_ptr<Buffer> buffer;
  std::vector<std::shared_ptr<Buffer>> buffers;
  std::vector<Optional<ReadOnlyBuffer>> views;
  const SetParam nx{.existence = ExistenceOpt::NX};
  std::vector<std::string> nine;
  for (int i = 0; i < 9; ++i) nine.push_back(std::to_string(i));
  const struct {
    Status status;
    const char* reason;
  } cases[] = {
      {client_.Set("", "v"), "The objectKey should not be empty."},
      {client_.Set("a b", "v"), "0x20 at position 1"},
      {client_.Set("k", ""), "The dataSize value should be bigger than zero."},
      {client_.Set("k", "v", {.writeMode = static_cast<WriteMode>(9)}), "9 is not a write mode"},
      {client_.Set("k", "v", {.existence = static_cast<ExistenceOpt>(2)}), "2 is not an existence option"},
      {client_.Create("k", 0, {}, buffer), "The dataSize value should be bigger than zero."},
      {client_.Create("k", 1, {.existence = ExistenceOpt::NX}, buffer), "Create does not support NX"},
      {client_.Get(std::string(1025, 'k'), text), "1025 bytes"},
      {client_.Get(std::vector<std::string>(), texts), "The keys are empty"},
      {client_.Get({"", "b/d"}, texts), "key '', number 1 of 2: The objectKey should not be empty."},
      {client_.MSet({"a b", "k"}, {"v", ""}, texts), "key 'a b', number 1 of 2"},
      {client_.Del(std::vector<std::string>(), texts), "The keys are empty"},
      {client_.MCreate({"k", "k"}, {1, 1}, {}, buffers), "key k occurs twice"},
      {client_.MCreate({"k"}, {1, 2}, {}, buffers), "1 keys, but 2 sizes"},
      {client_.MSet(buffers), "The buffers are empty"},
      {client_.MSetTx({"k"}, {"v"}), "The MSetTx only supports set not existence key now"},
      {client_.MSetTx({"k", "k"}, {"v", "w"}, nx), "key k occurs twice"},
      {client_.MSetTx(nine, std::vector<StringView>(9, "v"), nx), "The objectKeys size exceed 8."},
      {client_.Read({{"k", 1, ~uint64_t{0}}}, views), "beyond 64 bits"},
      {client_.Read({{"k", 1, 2}, {"k", 3, 4}}, views), "key k occurs twice"},
      {client_.Exist({"good", "b\x01"}, exists), "key 'b\\x01', number 2 of 2: The objectKey has an illegal byte"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(c.status.GetCode(), K_INVALID) << c.reason;
    EXPECT_THAT(c.status.GetMsg(), HasSubstr(c.reason));
    EXPECT_THAT(c.status.GetMsg(), testing::ContainsRegex(kTraced));
  }
  EXPECT_EQ(client_.Set("k", "v", {.cacheType = CacheType::DISK}).GetCode(), K_NOT_SUPPORTED);
  EXPECT_EQ(worker_.state().requests.size(), before);
}

TEST_F(KVClientTest, AFullBatchOfLongestKeysFits) {
  std::vector<std::string> keys(10000, std::string(1024, 'k'));
  std::vector<bool> exists;
  ASSERT_OK(client_.Exist(keys, exists));
  EXPECT_EQ(exists, std::vector<bool>(10000, false));
}

TEST_F(KVClientTest, GeneratedKeysAreLegalAndDiffer) {
  const std::string key = client_.GenerateKey();
  EXPECT_EQ(key.size(), 73u);
  EXPECT_NE(key, client_.GenerateKey());
  EXPECT_THAT(client_.GenerateKey("prefix"), testing::StartsWith("prefix;"));
  EXPECT_EQ(client_.GenerateKey("bad prefix"), "");
  std::string out = "untouched";
  EXPECT_EQ(client_.GenerateKey("bad prefix", out).GetCode(), K_INVALID);
  EXPECT_EQ(out, "untouched");
  const std::string stored = client_.Set("value");
  std::string text;
  ASSERT_OK(client_.Get(stored, text));
  EXPECT_EQ(text, "value");
  EXPECT_EQ(client_.Set(""), "");
}

TEST_F(KVClientTest, ShowsTheTraceIdOfTheThread) {
  ASSERT_OK(Context::SetTraceId("request-17/a"));
  std::string text;
  EXPECT_THAT(client_.Get("missing", text).GetMsg(), testing::EndsWith(", traceId: request-17/a"));
  EXPECT_THAT(Context::SetTraceId("no spaces").GetMsg(), HasSubstr("0x20 at position 2"));
  EXPECT_EQ(Context::SetTraceId(std::string(256, 'x')).GetCode(), K_INVALID);
  EXPECT_THAT(client_.Get("missing", text).GetMsg(), testing::EndsWith(", traceId: request-17/a"));
  ASSERT_OK(Context::SetTraceId(""));
  EXPECT_THAT(client_.Get("missing", text).GetMsg(), testing::ContainsRegex(kTraced));
}

TEST_F(KVClientTest, InitTwiceAndAfterShutDownAreFine) {
  ASSERT_OK(client_.Init());
  ASSERT_OK(client_.ShutDown());
  ASSERT_OK(client_.ShutDown());
  EXPECT_EQ(client_.HealthCheck().GetCode(), K_NOT_READY);
  ASSERT_OK(client_.Init());
  ASSERT_OK(client_.HealthCheck());
}

TEST_F(KVClientTest, TheWorkersReportComesOverAConnectionOfItsOwn) {
  auto report = FetchWorkerReport("127.0.0.1", worker_.port(), std::chrono::seconds(10));
  ASSERT_TRUE(report.ok()) << report.status().ToString();
  EXPECT_EQ(*report, R"({"version":"scripted"})");
}

TEST(KVClientWithoutAuthentication, RefusesNewCredentialsInsteadOfIgnoringThem) {
  KVClient client;
  EXPECT_EQ(client.UpdateToken("secret").GetCode(), K_NOT_SUPPORTED);
  EXPECT_EQ(client.UpdateAkSk("access", "secret").GetCode(), K_NOT_SUPPORTED);
}

}  // namespace
}  // namespace datasystem::client
