// Checks our codec against the code that protoc makes of session.proto: each message in both directions.
#include "proto/session_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "session.pb.h"

namespace datasystem::proto {
namespace {

namespace pb = datasystem::session;
using Rng = std::mt19937_64;

uint64_t Number(Rng& rng) {
  // All lengths of varints, zero included.
  return rng() >> (rng() % 65 == 64 ? 63 : rng() % 64);
}
std::string Text(Rng& rng) {
  std::string text(rng() % 3 == 0 ? 0 : rng() % 300, ' ');
  for (char& c : text) c = static_cast<char>('!' + rng() % 90);
  return text;
}
size_t Count(Rng& rng) { return rng() % 5; }

template <typename Pb>
void FillStatus(Pb& out, Rng& rng) {
  out.set_status_code(static_cast<uint32_t>(Number(rng)));
  out.set_status_message(Text(rng));
}
template <typename Pb>
void ExpectSameStatus(const Pb& pb, const Status& ours) {
  EXPECT_EQ(pb.status_code(), static_cast<uint32_t>(ours.GetCode()));
  EXPECT_EQ(pb.status_message(), ours.GetMsg());
}
void FillLocation(pb::Location& out, Rng& rng) {
  out.set_segment(static_cast<uint32_t>(Number(rng)));
  out.set_offset(Number(rng));
  out.set_size(1 + Number(rng) / 2);
}
void ExpectSameLocation(const pb::Location& pb, const Location& ours) {
  EXPECT_EQ(pb.segment(), ours.segment);
  EXPECT_EQ(pb.offset(), ours.offset);
  EXPECT_EQ(pb.size(), ours.size);
}
void FillParam(pb::SetParam& out, Rng& rng) {
  out.set_write_mode(rng() % 5);
  out.set_ttl_second(static_cast<uint32_t>(Number(rng)));
  out.set_existence(1);
}
void ExpectSameParam(const pb::SetParam& pb, const SetParam& ours) {
  EXPECT_EQ(pb.write_mode(), ours.write_mode);
  EXPECT_EQ(pb.ttl_second(), ours.ttl_second);
  EXPECT_EQ(pb.existence(), ours.existence);
}

// For each message of ours: protoc's twin, how to fill it at random, and what makes the two the same.
template <typename Message>
struct Twin;

template <>
struct Twin<Hello> {
  using Pb = pb::Hello;
  static void Fill(Pb& out, Rng& rng) {
    out.set_protocol_min(static_cast<uint32_t>(Number(rng)));
    out.set_protocol_max(static_cast<uint32_t>(Number(rng)));
    out.set_client_version(Text(rng));
    out.set_process_id(Number(rng));
    out.set_session_id(Number(rng));
    out.set_session_token(Number(rng));
    out.set_want_segments(rng() % 2);
    out.set_want_channel(rng() % 2);
  }
  static void ExpectSame(const Pb& pb, const Hello& ours) {
    EXPECT_EQ(pb.protocol_min(), ours.protocol_min);
    EXPECT_EQ(pb.protocol_max(), ours.protocol_max);
    EXPECT_EQ(pb.client_version(), ours.client_version);
    EXPECT_EQ(pb.process_id(), ours.process_id);
    EXPECT_EQ(pb.session_id(), ours.session_id);
    EXPECT_EQ(pb.session_token(), ours.session_token);
    EXPECT_EQ(pb.want_segments(), ours.want_segments);
    EXPECT_EQ(pb.want_channel(), ours.want_channel);
  }
};

template <>
struct Twin<HelloReply> {
  using Pb = pb::HelloReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    out.set_protocol(static_cast<uint32_t>(Number(rng)));
    out.set_worker_version(Text(rng));
    out.set_worker_incarnation(Number(rng));
    out.set_session_id(Number(rng));
    out.set_session_token(Number(rng));
    out.set_unix_socket_path(Text(rng));
    out.set_inline_threshold_bytes(Number(rng));
    out.set_channel(static_cast<uint32_t>(Number(rng)));
    for (size_t i = Count(rng); i > 0; --i) {
      pb::Segment* segment = out.add_segments();
      segment->set_id(static_cast<uint32_t>(Number(rng)));
      segment->set_size_bytes(Number(rng));
      segment->set_kind(static_cast<pb::SegmentKind>(rng() % 4));
    }
  }
  static void ExpectSame(const Pb& pb, const HelloReply& ours) {
    ExpectSameStatus(pb, ours.status);
    EXPECT_EQ(pb.protocol(), ours.protocol);
    EXPECT_EQ(pb.worker_version(), ours.worker_version);
    EXPECT_EQ(pb.worker_incarnation(), ours.worker_incarnation);
    EXPECT_EQ(pb.session_id(), ours.session_id);
    EXPECT_EQ(pb.session_token(), ours.session_token);
    EXPECT_EQ(pb.unix_socket_path(), ours.unix_socket_path);
    EXPECT_EQ(pb.inline_threshold_bytes(), ours.inline_threshold_bytes);
    EXPECT_EQ(pb.channel(), ours.channel);
    ASSERT_EQ(static_cast<size_t>(pb.segments_size()), ours.segments.size());
    for (size_t i = 0; i < ours.segments.size(); ++i) {
      EXPECT_EQ(pb.segments(i).id(), ours.segments[i].id);
      EXPECT_EQ(pb.segments(i).size_bytes(), ours.segments[i].size_bytes);
      EXPECT_EQ(static_cast<uint32_t>(pb.segments(i).kind()), static_cast<uint32_t>(ours.segments[i].kind));
    }
  }
};

template <>
struct Twin<StatusReply> {
  using Pb = pb::StatusReply;
  static void Fill(Pb& out, Rng& rng) { FillStatus(out, rng); }
  static void ExpectSame(const Pb& pb, const StatusReply& ours) {
    ExpectSameStatus(pb, ours.status);
  }
};

template <>
struct Twin<SetRequest> {
  using Pb = pb::SetRequest;
  static void Fill(Pb& out, Rng& rng) {
    for (size_t i = Count(rng); i > 0; --i) {
      pb::SetItem* item = out.add_items();
      item->set_key(Text(rng));
      item->set_size(Number(rng));
      item->set_buffer_id(Number(rng));
    }
    if (rng() % 2) FillParam(*out.mutable_param(), rng);
    out.set_timeout_ms(static_cast<uint32_t>(Number(rng)));
    out.set_all_or_nothing(rng() % 2);
    out.set_lease_size(Number(rng));
  }
  static void ExpectSame(const Pb& pb, const SetRequest& ours) {
    ASSERT_EQ(static_cast<size_t>(pb.items_size()), ours.items.size());
    for (size_t i = 0; i < ours.items.size(); ++i) {
      EXPECT_EQ(pb.items(i).key(), ours.items[i].key);
      EXPECT_EQ(pb.items(i).size(), ours.items[i].size);
      EXPECT_EQ(pb.items(i).buffer_id(), ours.items[i].buffer_id);
    }
    ExpectSameParam(pb.param(), ours.param);
    EXPECT_EQ(pb.timeout_ms(), ours.timeout_ms);
    EXPECT_EQ(pb.all_or_nothing(), ours.all_or_nothing);
    EXPECT_EQ(pb.lease_size(), ours.lease_size);
  }
};

template <>
struct Twin<SetReply> {
  using Pb = pb::SetReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    for (size_t i = Count(rng); i > 0; --i) FillStatus(*out.add_items(), rng);
    if (rng() % 2) {
      out.mutable_lease()->set_slot(static_cast<uint32_t>(Number(rng)));
      out.mutable_lease()->set_buffer_id(1 + Number(rng) / 2);
      if (rng() % 2) FillLocation(*out.mutable_lease()->mutable_location(), rng);
    }
  }
  static void ExpectSame(const Pb& pb, const SetReply& ours) {
    ExpectSameStatus(pb, ours.status);
    ASSERT_EQ(static_cast<size_t>(pb.items_size()), ours.items.size());
    for (size_t i = 0; i < ours.items.size(); ++i) ExpectSameStatus(pb.items(i), ours.items[i]);
    EXPECT_EQ(pb.lease().slot(), ours.lease.slot);
    EXPECT_EQ(pb.lease().buffer_id(), ours.lease.buffer_id);
    ExpectSameLocation(pb.lease().location(), ours.lease.location);
  }
};

template <>
struct Twin<CreateRequest> {
  using Pb = pb::CreateRequest;
  static void Fill(Pb& out, Rng& rng) {
    for (size_t i = Count(rng); i > 0; --i) out.add_sizes(Number(rng));
  }
  static void ExpectSame(const Pb& pb, const CreateRequest& ours) {
    EXPECT_THAT(ours.sizes, testing::ElementsAreArray(pb.sizes()));
  }
};

template <>
struct Twin<CreateReply> {
  using Pb = pb::CreateReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    for (size_t i = Count(rng); i > 0; --i) {
      pb::CreateItem* item = out.add_items();
      FillStatus(*item, rng);
      item->set_buffer_id(Number(rng));
      if (rng() % 2) FillLocation(*item->mutable_location(), rng);
    }
  }
  static void ExpectSame(const Pb& pb, const CreateReply& ours) {
    ExpectSameStatus(pb, ours.status);
    ASSERT_EQ(static_cast<size_t>(pb.items_size()), ours.items.size());
    for (size_t i = 0; i < ours.items.size(); ++i) {
      ExpectSameStatus(pb.items(i), ours.items[i].status);
      EXPECT_EQ(pb.items(i).buffer_id(), ours.items[i].buffer_id);
      ExpectSameLocation(pb.items(i).location(), ours.items[i].location);
    }
  }
};

template <>
struct Twin<AbandonRequest> {
  using Pb = pb::AbandonRequest;
  static void Fill(Pb& out, Rng& rng) {
    for (size_t i = Count(rng); i > 0; --i) out.add_buffer_ids(Number(rng));
  }
  static void ExpectSame(const Pb& pb, const AbandonRequest& ours) {
    EXPECT_THAT(ours.buffer_ids, testing::ElementsAreArray(pb.buffer_ids()));
  }
};

template <>
struct Twin<GetRequest> {
  using Pb = pb::GetRequest;
  static void Fill(Pb& out, Rng& rng) {
    const bool slices = rng() % 2;
    for (size_t i = Count(rng); i > 0; --i) {
      out.add_keys(Text(rng));
      if (slices) out.add_offsets(Number(rng));
      if (slices) out.add_sizes(Number(rng));
    }
    out.set_timeout_ms(static_cast<uint32_t>(Number(rng)));
    out.set_sub_timeout_ms(static_cast<uint32_t>(Number(rng)));
    out.set_reads_index(rng() % 2);
  }
  static void ExpectSame(const Pb& pb, const GetRequest& ours) {
    EXPECT_THAT(ours.keys, testing::ElementsAreArray(pb.keys()));
    EXPECT_EQ(pb.timeout_ms(), ours.timeout_ms);
    EXPECT_EQ(pb.sub_timeout_ms(), ours.sub_timeout_ms);
    EXPECT_EQ(pb.reads_index(), ours.reads_index);
    EXPECT_THAT(ours.offsets, testing::ElementsAreArray(pb.offsets()));
    EXPECT_THAT(ours.sizes, testing::ElementsAreArray(pb.sizes()));
  }
};

template <>
struct Twin<GetReply> {
  using Pb = pb::GetReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    for (size_t i = Count(rng); i > 0; --i) {
      pb::GetItem* item = out.add_items();
      FillStatus(*item, rng);
      item->set_size(Number(rng));
      item->set_pin_id(Number(rng));
      if (rng() % 2) FillLocation(*item->mutable_location(), rng);
      item->set_here(rng() % 2);
    }
  }
  static void ExpectSame(const Pb& pb, const GetReply& ours) {
    ExpectSameStatus(pb, ours.status);
    ASSERT_EQ(static_cast<size_t>(pb.items_size()), ours.items.size());
    for (size_t i = 0; i < ours.items.size(); ++i) {
      ExpectSameStatus(pb.items(i), ours.items[i].status);
      EXPECT_EQ(pb.items(i).size(), ours.items[i].size);
      EXPECT_EQ(pb.items(i).pin_id(), ours.items[i].pin_id);
      EXPECT_EQ(pb.items(i).here(), ours.items[i].here);
      ExpectSameLocation(pb.items(i).location(), ours.items[i].location);
    }
  }
};

template <>
struct Twin<ReleaseRequest> {
  using Pb = pb::ReleaseRequest;
  static void Fill(Pb& out, Rng& rng) {
    for (size_t i = Count(rng); i > 0; --i) out.add_pin_ids(Number(rng));
  }
  static void ExpectSame(const Pb& pb, const ReleaseRequest& ours) {
    EXPECT_THAT(ours.pin_ids, testing::ElementsAreArray(pb.pin_ids()));
  }
};

template <>
struct Twin<DeleteRequest> {
  using Pb = pb::DeleteRequest;
  static void Fill(Pb& out, Rng& rng) {
    for (size_t i = Count(rng); i > 0; --i) out.add_keys(Text(rng));
    out.set_timeout_ms(static_cast<uint32_t>(Number(rng)));
  }
  static void ExpectSame(const Pb& pb, const DeleteRequest& ours) {
    EXPECT_THAT(ours.keys, testing::ElementsAreArray(pb.keys()));
    EXPECT_EQ(pb.timeout_ms(), ours.timeout_ms);
  }
};

template <>
struct Twin<DeleteReply> {
  using Pb = pb::DeleteReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    for (size_t i = Count(rng); i > 0; --i) FillStatus(*out.add_items(), rng);
  }
  static void ExpectSame(const Pb& pb, const DeleteReply& ours) {
    ExpectSameStatus(pb, ours.status);
    ASSERT_EQ(static_cast<size_t>(pb.items_size()), ours.items.size());
    for (size_t i = 0; i < ours.items.size(); ++i) ExpectSameStatus(pb.items(i), ours.items[i]);
  }
};

template <>
struct Twin<ExistRequest> {
  using Pb = pb::ExistRequest;
  static void Fill(Pb& out, Rng& rng) {
    for (size_t i = Count(rng); i > 0; --i) out.add_keys(Text(rng));
    out.set_timeout_ms(static_cast<uint32_t>(Number(rng)));
  }
  static void ExpectSame(const Pb& pb, const ExistRequest& ours) {
    EXPECT_THAT(ours.keys, testing::ElementsAreArray(pb.keys()));
    EXPECT_EQ(pb.timeout_ms(), ours.timeout_ms);
  }
};

template <>
struct Twin<ExistReply> {
  using Pb = pb::ExistReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    for (size_t i = Count(rng); i > 0; --i) out.add_exists(rng() % 2);
  }
  static void ExpectSame(const Pb& pb, const ExistReply& ours) {
    ExpectSameStatus(pb, ours.status);
    EXPECT_THAT(ours.exists, testing::ElementsAreArray(pb.exists()));
  }
};

template <>
struct Twin<ExpireRequest> {
  using Pb = pb::ExpireRequest;
  static void Fill(Pb& out, Rng& rng) {
    for (size_t i = Count(rng); i > 0; --i) out.add_keys(Text(rng));
    out.set_ttl_second(static_cast<uint32_t>(Number(rng)));
    out.set_timeout_ms(static_cast<uint32_t>(Number(rng)));
  }
  static void ExpectSame(const Pb& pb, const ExpireRequest& ours) {
    EXPECT_THAT(ours.keys, testing::ElementsAreArray(pb.keys()));
    EXPECT_EQ(pb.ttl_second(), ours.ttl_second);
    EXPECT_EQ(pb.timeout_ms(), ours.timeout_ms);
  }
};

template <>
struct Twin<ExpireReply> {
  using Pb = pb::ExpireReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    for (size_t i = Count(rng); i > 0; --i) FillStatus(*out.add_items(), rng);
  }
  static void ExpectSame(const Pb& pb, const ExpireReply& ours) {
    ExpectSameStatus(pb, ours.status);
    ASSERT_EQ(static_cast<size_t>(pb.items_size()), ours.items.size());
    for (size_t i = 0; i < ours.items.size(); ++i) ExpectSameStatus(pb.items(i), ours.items[i]);
  }
};

template <>
struct Twin<SizesRequest> {
  using Pb = pb::SizesRequest;
  static void Fill(Pb& out, Rng& rng) {
    for (size_t i = Count(rng); i > 0; --i) out.add_keys(Text(rng));
    out.set_timeout_ms(static_cast<uint32_t>(Number(rng)));
  }
  static void ExpectSame(const Pb& pb, const SizesRequest& ours) {
    EXPECT_THAT(ours.keys, testing::ElementsAreArray(pb.keys()));
    EXPECT_EQ(pb.timeout_ms(), ours.timeout_ms);
  }
};

template <>
struct Twin<SizesReply> {
  using Pb = pb::SizesReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    for (size_t i = Count(rng); i > 0; --i) {
      pb::SizeItem* item = out.add_items();
      FillStatus(*item, rng);
      item->set_size(Number(rng));
    }
  }
  static void ExpectSame(const Pb& pb, const SizesReply& ours) {
    ExpectSameStatus(pb, ours.status);
    ASSERT_EQ(static_cast<size_t>(pb.items_size()), ours.items.size());
    for (size_t i = 0; i < ours.items.size(); ++i) {
      ExpectSameStatus(pb.items(i), ours.items[i].status);
      EXPECT_EQ(pb.items(i).size(), ours.items[i].size);
    }
  }
};

template <>
struct Twin<ReportReply> {
  using Pb = pb::ReportReply;
  static void Fill(Pb& out, Rng& rng) {
    FillStatus(out, rng);
    out.set_json(Text(rng));
  }
  static void ExpectSame(const Pb& pb, const ReportReply& ours) {
    ExpectSameStatus(pb, ours.status);
    EXPECT_EQ(pb.json(), ours.json);
  }
};

// What we refuse beyond what protoc does.
template <typename Pb>
bool IsSound(const Pb&) {
  return true;
}
bool IsSound(const pb::GetRequest& get) {
  return get.offsets_size() == get.sizes_size() && (get.offsets_size() == 0 || get.offsets_size() == get.keys_size());
}

template <typename Message>
class SessionMessages : public testing::Test {
 protected:
  SessionMessages() { std::printf("seed %lu\n", seed_); }

  typename Twin<Message>::Pb RandomTwin() {
    typename Twin<Message>::Pb twin;
    Twin<Message>::Fill(twin, rng_);
    return twin;
  }

  const uint64_t seed_ = std::random_device()();
  Rng rng_{seed_};
};

using All =
    testing::Types<Hello, HelloReply, StatusReply, SetRequest, SetReply, CreateRequest, CreateReply, AbandonRequest,
                   GetRequest, GetReply, ReleaseRequest, DeleteRequest, DeleteReply, ExistRequest, ExistReply,
                   ExpireRequest, ExpireReply, SizesRequest, SizesReply, ReportReply>;
TYPED_TEST_SUITE(SessionMessages, All);

TYPED_TEST(SessionMessages, AreReadAndWrittenExactlyAsProtocDoes) {
  for (int i = 0; i < 200; ++i) {
    const auto twin = this->RandomTwin();
    const std::string bytes = twin.SerializeAsString();
    auto ours = TypeParam::Decode(bytes);
    ASSERT_TRUE(ours.ok()) << ours.status().ToString();
    Twin<TypeParam>::ExpectSame(twin, *ours);
    EXPECT_EQ(ours->Encode(), bytes);
  }
}

TYPED_TEST(SessionMessages, AreRefusedWhenCutExactlyWhereProtocRefusesThem) {
  for (int i = 0; i < 20; ++i) {
    const std::string bytes = this->RandomTwin().SerializeAsString();
    for (size_t length = 0; length < bytes.size(); ++length) {
      // A copy of exact size, so that the address sanitizer sees a read beyond it.
      const std::vector<char> cut(bytes.begin(), bytes.begin() + length);
      auto ours = TypeParam::Decode({cut.data(), cut.size()});
      typename Twin<TypeParam>::Pb twin;
      const bool parsed = twin.ParseFromArray(cut.data(), static_cast<int>(cut.size()));
      ASSERT_EQ(ours.ok(), parsed && IsSound(twin)) << length;
      if (ours.ok()) Twin<TypeParam>::ExpectSame(twin, *ours);
    }
  }
}

TYPED_TEST(SessionMessages, SkipFieldsOfLaterVersions) {
  const auto twin = this->RandomTwin();
  std::string unknown;
  unknown += std::string("\xA0\x06\x96\x01", 4);                  // field 100, varint
  unknown += std::string("\xAA\x06\x03yes", 6);                   // field 101, bytes
  unknown += std::string("\xB5\x06\0\0\0\0", 6);                  // field 102, fixed32
  unknown += std::string("\xB9\x06\0\0\0\0\0\0\0\0", 10);         // field 103, fixed64
  auto ours = TypeParam::Decode(unknown + twin.SerializeAsString() + unknown);
  ASSERT_TRUE(ours.ok()) << ours.status().ToString();
  Twin<TypeParam>::ExpectSame(twin, *ours);
}

TYPED_TEST(SessionMessages, SurviveRandomBytesAndSayWhichMessageWasMalformed) {
  size_t refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::vector<char> bytes(this->rng_() % 64);
    for (char& byte : bytes) byte = static_cast<char>(this->rng_());
    auto ours = TypeParam::Decode({bytes.data(), bytes.size()});
    if (ours.ok()) continue;
    ++refused;
    ASSERT_EQ(ours.status().GetCode(), K_INVALID);
    ASSERT_THAT(ours.status().GetMsg(), testing::StartsWith("malformed "));
  }
  EXPECT_GT(refused, 0u);
}

TYPED_TEST(SessionMessages, SurviveFlippedBits) {
  for (int i = 0; i < 500; ++i) {
    const std::string text = this->RandomTwin().SerializeAsString();
    std::vector<char> bytes(text.begin(), text.end());
    for (int flips = 3; flips > 0 && !bytes.empty(); --flips) {
      bytes[this->rng_() % bytes.size()] ^= static_cast<char>(1 << this->rng_() % 8);
    }
    if (auto ours = TypeParam::Decode({bytes.data(), bytes.size()}); ours.ok()) {
      EXPECT_TRUE(TypeParam::Decode(ours->Encode()).ok());
    }
  }
}

TYPED_TEST(SessionMessages, RefuseAKnownFieldWithAnotherWireType) {
  auto ours = TypeParam::Decode(std::string("\x0D\0\0\0\0", 5));  // field 1, fixed32
  ASSERT_FALSE(ours.ok());
  EXPECT_THAT(ours.status().GetMsg(), testing::HasSubstr("field 1 has wire type 5"));
}

constexpr size_t kItemsMax = 16384;

// A length-delimited field without content, `count` times: an empty item, key, or list of numbers.
std::string EmptyItems(int field, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += {static_cast<char>(field << 3 | 2), '\0'};
  return out;
}

template <typename Message>
void ExpectItemsAreBounded(int field) {
  EXPECT_TRUE(Message::Decode(EmptyItems(field, kItemsMax)).ok()) << field;
  const auto refused = Message::Decode(EmptyItems(field, kItemsMax + 1));
  EXPECT_THAT(refused.status().GetMsg(), testing::HasSubstr("more than 16384 items")) << field;
}

TEST(SessionMessageLimits, ItemsAndKeysAreBounded) {
  ExpectItemsAreBounded<HelloReply>(10);
  ExpectItemsAreBounded<CreateReply>(3);
  ExpectItemsAreBounded<SetRequest>(1);
  ExpectItemsAreBounded<SetReply>(3);
  ExpectItemsAreBounded<GetRequest>(1);
  ExpectItemsAreBounded<GetReply>(3);
  ExpectItemsAreBounded<DeleteRequest>(1);
  ExpectItemsAreBounded<DeleteReply>(3);
  ExpectItemsAreBounded<ExistRequest>(1);
  ExpectItemsAreBounded<ExpireRequest>(1);
  ExpectItemsAreBounded<ExpireReply>(3);
  ExpectItemsAreBounded<SizesRequest>(1);
  ExpectItemsAreBounded<SizesReply>(3);
}

template <typename Message, typename Number>
void ExpectNumbersAreBounded(std::vector<Number> Message::*numbers, int field) {
  Message message;
  message.*numbers = std::vector<Number>(kItemsMax, Number{1});
  const std::string packed = message.Encode();
  EXPECT_TRUE(Message::Decode(packed).ok()) << field;
  // One more, by itself and packed.
  const auto head = static_cast<char>(field << 3);
  const std::string single{head, '\1'};
  const std::string one_packed{static_cast<char>(head | 2), '\1', '\1'};
  for (const std::string& more : {packed + single, packed + one_packed}) {
    EXPECT_THAT(Message::Decode(more).status().GetMsg(), testing::HasSubstr("more than 16384 items")) << field;
  }
}

TEST(SessionMessageLimits, NumbersAreBoundedPackedOrNot) {
  ExpectNumbersAreBounded(&CreateRequest::sizes, 1);
  ExpectNumbersAreBounded(&AbandonRequest::buffer_ids, 1);
  ExpectNumbersAreBounded(&ReleaseRequest::pin_ids, 1);
  ExpectNumbersAreBounded(&ExistReply::exists, 3);
}

TEST(SessionMessageLimits, NumbersOfASliceAreBoundedWithoutAnyKey) {
  GetRequest request{.keys = {}, .offsets = std::vector<uint64_t>(kItemsMax + 1, 1), .sizes = {}};
  EXPECT_THAT(GetRequest::Decode(request.Encode()).status().GetMsg(), testing::HasSubstr("more than 16384 items"));
  request.offsets.swap(request.sizes);
  EXPECT_THAT(GetRequest::Decode(request.Encode()).status().GetMsg(), testing::HasSubstr("more than 16384 items"));
}

TEST(SessionMessageLimits, ALeaseWithoutABufferIsNone) {
  SetReply reply;
  reply.lease = {.slot = 7, .buffer_id = 0, .location = {1, 2, 3}};
  const auto ours = SetReply::Decode(reply.Encode());
  ASSERT_TRUE(ours.ok());
  EXPECT_EQ(ours->lease.slot, 0u);
  EXPECT_EQ(ours->lease.location.size, 0u);
}

TEST(SessionMessageLimits, SlicesComeForEachKeyOrForNone) {
  GetRequest request{.keys = {"a", "b"}, .timeout_ms = 1, .sub_timeout_ms = 0, .offsets = {1, 2}, .sizes = {3, 4}};
  EXPECT_TRUE(GetRequest::Decode(request.Encode()).ok());
  for (auto* numbers : {&request.offsets, &request.sizes}) {
    const std::vector<uint64_t> kept = *numbers;
    for (const std::vector<uint64_t>& wrong : {std::vector<uint64_t>{}, {1}, {1, 2, 3}}) {
      *numbers = wrong;
      EXPECT_EQ(GetRequest::Decode(request.Encode()).status().GetCode(), K_INVALID) << wrong.size();
    }
    *numbers = kept;
  }
}

TEST(SessionMessageLimits, ASegmentOfAKindThatIsNotKnownIsKeptForTheClientToName) {
  HelloReply reply;
  reply.segments.push_back({7, 4096, static_cast<SegmentKind>(4)});
  const auto ours = HelloReply::Decode(reply.Encode());
  ASSERT_TRUE(ours.ok());
  EXPECT_EQ(static_cast<uint32_t>(ours->segments[0].kind), 4u);
}

TEST(SessionMessageLimits, NumbersOneByOneAreReadLikePackedOnes) {
  auto ours = ReleaseRequest::Decode(std::string("\x08\x07\x08\x96\x01", 5));
  ASSERT_TRUE(ours.ok());
  EXPECT_THAT(ours->pin_ids, testing::ElementsAre(7u, 150u));
}

}  // namespace
}  // namespace datasystem::proto
