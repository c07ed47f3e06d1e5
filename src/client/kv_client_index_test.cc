// What a KVClient reads from the worker's index, without asking; and buffers that the worker gives
// ahead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "client/lease_book.h"
#include "client/scripted_worker.h"
#include "datasystem/kv_client.h"
#include "shm/index.h"

namespace datasystem::client {
namespace {

using proto::SegmentKind;
using proto::SessionMessage;
using testing::ElementsAre;

#define ASSERT_OK(expr) ASSERT_EQ((expr).ToString(), Status::OK().ToString())

ConnectOptions To(const ScriptedWorker& worker) {
  ConnectOptions options;
  options.host = "127.0.0.1";
  options.port = worker.port();
  options.connectTimeoutMs = 10000;
  return options;
}

std::string Content(const ReadOnlyBuffer& buffer) {
  return {static_cast<const char*>(buffer.ImmutableData()), static_cast<size_t>(buffer.GetSize())};
}

// A worker with a real index in front of it. What is in the index the scripted worker itself does
// not know.
class KVClientIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    index_->set_valid_until(Clock::Steady().Now() + std::chrono::hours(1));
    index_->pins().Add(&control_.layout());
    worker_.SetGreetingScript([this](bool, proto::HelloReply& reply, std::vector<int>& fds) {
      if (reply.segments.empty()) return;
      const auto add = [&](SegmentKind kind, int fd, uint64_t size) {
        reply.segments.push_back({.size_bytes = size, .kind = kind});
        fds.push_back(fd);
      };
      const shm::SegmentHandle index = index_->index_segment();
      const shm::SegmentHandle marks = index_->marks_segment();
      add(SegmentKind::kIndex, index.fd, index.size_bytes);
      add(SegmentKind::kMarks, marks.fd, marks.size_bytes);
      add(SegmentKind::kControl, control_.fd(), control_.size_bytes());
    });
    ASSERT_OK(client_.Init());
  }
  void TearDown() override {
    for (shm::Record* record : records_) {
      index_->Unlink(record);
      index_->Free(record);
    }
    index_->pins().Remove(&control_.layout());
  }

  void Add(const std::string& key, const std::string& value) {
    const proto::Location at = worker_.Place(value);
    void* memory = index_->Allocate(key.size());
    ASSERT_NE(memory, nullptr);
    auto* record = new (memory)
        shm::Record(key, {.segment = at.segment, .offset = at.offset, .size = at.size});
    ASSERT_TRUE(index_->Link(record, nullptr));
    records_.push_back(record);
  }
  bool IsPinned(const std::string& key) {
    return index_->pins().Collect().Contains(index_->IdOf(index_->Find(key)));
  }
  size_t Requests() { return worker_.state().requests.size(); }

  std::unique_ptr<shm::Index> index_ = shm::Index::Create({.bytes_max = 1 << 20}).value();
  shm::ControlSegment control_ = shm::ControlSegment::Create().value();
  std::vector<shm::Record*> records_;
  ScriptedWorker worker_;
  KVClient client_{To(worker_)};
};

TEST_F(KVClientIndexTest, EveryFormOfReadingWhatIsHereSendsNothing) {
  const std::string large(9 << 20, 'x');
  Add("a", "value");
  Add("b", large);
  const size_t before = Requests();
  std::string text = "something longer than that";
  ASSERT_OK(client_.Get("a", text));
  EXPECT_EQ(text, "value");
  text.assign(large.size() + 5, 'y');
  ASSERT_OK(client_.Get("b", text));
  EXPECT_TRUE(text == large);
  Optional<ReadOnlyBuffer> view;
  ASSERT_OK(client_.Get("a", view, 1000));
  EXPECT_EQ(Content(*view), "value");
  Optional<Buffer> buffer;
  ASSERT_OK(client_.Get("a", buffer));
  EXPECT_EQ(buffer->GetSize(), 5);
  std::vector<std::string> texts;
  ASSERT_OK(client_.Get({"a", "b", "a"}, texts));
  EXPECT_THAT(texts, ElementsAre("value", large, "value"));
  std::vector<Optional<ReadOnlyBuffer>> views;
  ASSERT_OK(client_.Get({"a", "b"}, views));
  EXPECT_EQ(Content(*views[0]), "value");
  ASSERT_OK(client_.Read({{"a", 1, 3}, {"b", large.size() - 1, 9}}, views));
  EXPECT_EQ(Content(*views[0]), "alu");
  EXPECT_EQ(Content(*views[1]), "x");
  EXPECT_EQ(client_.Read({{"a", 5}}, views).GetCode(), K_OUT_OF_RANGE);
  std::vector<bool> exists;
  ASSERT_OK(client_.Exist({"a", "b"}, exists));
  EXPECT_THAT(exists, ElementsAre(true, true));
  std::vector<uint64_t> sizes;
  ASSERT_OK(client_.QuerySize({"b", "a"}, sizes));
  EXPECT_THAT(sizes, ElementsAre(large.size(), 5u));
  EXPECT_EQ(Requests(), before);
}

TEST_F(KVClientIndexTest, OnlyWhatIsMissingIsAskedForInOneMessage) {
  Add("here", "1");
  ASSERT_OK(client_.Set("there", "2"));
  std::vector<std::string> texts;
  ASSERT_OK(client_.Get({"there", "here", "nowhere"}, texts));
  EXPECT_THAT(texts, ElementsAre("2", "1", ""));
  EXPECT_THAT(proto::GetRequest::Decode(worker_.state().requests.back().body)->keys,
              ElementsAre("there", "nowhere"));
  std::vector<bool> exists;
  ASSERT_OK(client_.Exist({"nowhere", "here", "there"}, exists));
  EXPECT_THAT(exists, ElementsAre(false, true, true));
  EXPECT_THAT(proto::ExistRequest::Decode(worker_.state().requests.back().body)->keys,
              ElementsAre("nowhere", "there"));
}

TEST_F(KVClientIndexTest, AViewPinsItsRecordAsLongAsACopyOfItLives) {
  Add("a", "value");
  Optional<ReadOnlyBuffer> view;
  ASSERT_OK(client_.Get("a", view));
  Optional<ReadOnlyBuffer> copy = view;
  view.reset();
  ASSERT_OK(client_.ShutDown());
  EXPECT_TRUE(IsPinned("a"));
  EXPECT_EQ(Content(*copy), "value");
  copy.reset();
  EXPECT_FALSE(IsPinned("a"));
}

TEST_F(KVClientIndexTest, StringsLeaveNoPin) {
  Add("a", "value");
  std::vector<std::string> texts;
  ASSERT_OK(client_.Get({"a", "a"}, texts));
  EXPECT_FALSE(IsPinned("a"));
}

TEST_F(KVClientIndexTest, AnIndexThatMayNotBeReadIsNotRead) {
  Add("a", "of the index");
  ASSERT_OK(client_.Set("a", "of the worker"));
  index_->set_valid_until(TimePoint::min());
  std::string text;
  ASSERT_OK(client_.Get("a", text));
  EXPECT_EQ(text, "of the worker");
}

TEST_F(KVClientIndexTest, AChildThatDropsItsCopyOfAViewLeavesTheParentsPinAlone) {
  Add("a", "value");
  Optional<ReadOnlyBuffer> view;
  ASSERT_OK(client_.Get("a", view));
  const pid_t child = ::fork();
  if (child == 0) {
    view.reset();
    std::string text;
    ::_exit(client_.Get("a", text).GetCode() == K_RUNTIME_ERROR ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsPinned("a"));
}

TEST_F(KVClientIndexTest, TheThirdSetOfASizeTakesAGivenBufferAndNeedsOneMessage) {
  std::atomic<uint64_t>& word = control_.layout().leases[4];
  const proto::Location place = worker_.Place(std::string(5120, 0));
  std::atomic<uint64_t> wished = 0;
  worker_.SetScript([&](const ScriptedRequest& request) {
    if (request.type != SessionMessage::kSet) return false;
    const auto set = proto::SetRequest::Decode(request.body);
    if (set->lease_size == 0 || wished != 0) return false;
    wished = set->lease_size;
    word = shm::LeaseWord::Leased(900);
    proto::SetReply reply{.items = {Status::OK()},
                          .lease = {.slot = 4, .buffer_id = 900, .location = place}};
    request.Answer(SessionMessage::kSetReply, reply.Encode());
    return true;
  });
  ASSERT_OK(client_.Set("a", std::string(5000, 'x')));
  ASSERT_OK(client_.Set("b", std::string(5001, 'x')));
  EXPECT_EQ(wished, 5120u);
  EXPECT_EQ(worker_.Count(SessionMessage::kCreate), 2u);
  worker_.SetScript([](const ScriptedRequest& request) {
    if (request.type == SessionMessage::kAbandon) return true;
    if (request.type != SessionMessage::kSet) return false;
    request.Answer(SessionMessage::kSetReply, proto::SetReply{.items = {Status::OK()}}.Encode());
    return true;
  });
  ASSERT_OK(client_.Set("c", std::string(5002, 'z')));
  EXPECT_EQ(worker_.Count(SessionMessage::kCreate), 2u);
  EXPECT_EQ(word, shm::LeaseWord::Taken(900));
  const auto set = proto::SetRequest::Decode(worker_.state().requests.back().body);
  EXPECT_EQ(set->items[0].buffer_id, 900u);
  EXPECT_EQ(set->items[0].size, 5002u);
}

TEST_F(KVClientIndexTest, ALeaseThatWasTakenBackIsNotUsed) {
  const proto::Location place = worker_.Place(std::string(5120, 0));
  std::atomic<int> given = 0;
  worker_.SetScript([&](const ScriptedRequest& request) {
    if (request.type != SessionMessage::kSet) return false;
    const auto set = proto::SetRequest::Decode(request.body);
    proto::SetReply reply{.items = {Status::OK()}};
    // The word stays 0: taken back at once.
    if (set->lease_size != 0) {
      reply.lease = {.slot = 4, .buffer_id = 900, .location = place};
      ++given;
    }
    request.Answer(SessionMessage::kSetReply, reply.Encode());
    return true;
  });
  for (int i = 0; i < 3; ++i) ASSERT_OK(client_.Set("a", std::string(5000, 'x')));
  EXPECT_GE(given, 1);
  EXPECT_EQ(worker_.Count(SessionMessage::kCreate), 3u);
}

TEST(LeaseBook, SizesOfAClassAreRoundedUpToAnEighthOfTheirPowerOfTwo) {
  EXPECT_EQ(LeaseBook::ClassOf(5000), 5120u);
  EXPECT_EQ(LeaseBook::ClassOf(4096), 4096u);
  EXPECT_EQ(LeaseBook::ClassOf(4097), 4608u);
  EXPECT_EQ(LeaseBook::ClassOf(8191), 8192u);
  EXPECT_EQ(LeaseBook::ClassOf(3), 3u);
}

TEST(LeaseBook, AsksOnlyAfterTwoSetsOfAClassWithinASecond) {
  LeaseBook book;
  const TimePoint start = Clock::Steady().Now();
  EXPECT_EQ(book.Wish(5000, start), 0u);
  EXPECT_EQ(book.Wish(9000, start), 0u);
  EXPECT_EQ(book.Wish(5000, start), 0u);
  EXPECT_EQ(book.Wish(5100, start + std::chrono::milliseconds(1000)), 5120u);
  EXPECT_EQ(book.Wish(5100, start + std::chrono::milliseconds(2001)), 0u);
}

}  // namespace
}  // namespace datasystem::client
