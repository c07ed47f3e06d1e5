// Checks our codec against the code that protoc makes of peer.proto: what protoc writes, we read; what we
// then write, protoc reads as the same message.
#include "proto/peer_messages.h"

#include <gtest/gtest.h>

#include <random>

#include "peer.pb.h"

namespace datasystem::proto {
namespace {

namespace pb = datasystem::peer;
using Rng = std::mt19937_64;

uint64_t Number(Rng& rng) { return rng() >> (rng() % 64); }
uint32_t Number32(Rng& rng) { return static_cast<uint32_t>(Number(rng)); }
std::string Key(Rng& rng) { return std::string(rng() % 300, static_cast<char>('a' + rng() % 26)); }

void Fill(pb::GetRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  out.set_key(Key(rng));
  out.set_wait_ms(Number32(rng));
  out.set_keep_copy(rng() % 2);
  out.set_timeout_ms(Number32(rng));
  out.set_size_only(rng() % 2);
}
void Fill(pb::FetchRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  out.set_key(Key(rng));
  out.set_version(Number(rng));
  out.set_timeout_ms(Number32(rng));
  out.set_keep_copy(rng() % 2);
  out.set_size_only(rng() % 2);
}
void Fill(pb::GetAnswer& out, Rng& rng) {
  out.set_version(Number(rng));
  out.set_ttl_remaining_ms(Number(rng));
  out.set_listed(rng() % 2);
  out.set_yours(rng() % 2);
  out.set_evictable(rng() % 2);
  out.set_size(Number(rng));
}
void Fill(pb::GetManyRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  for (int i = rng() % 4; i > 0; --i) {
    pb::GetManyRequest::Item& item = *out.add_items();
    item.set_key(Key(rng));
    item.set_version(Number(rng));
    item.set_keep_copy(rng() % 2);
  }
}
void Fill(pb::GetManyAnswer& out, Rng& rng) {
  for (int i = rng() % 4; i > 0; --i) {
    pb::GetManyAnswer::Item& item = *out.add_items();
    item.set_outcome(rng() % 5);
    item.set_version(Number(rng));
    item.set_ttl_remaining_ms(Number(rng));
    item.set_listed(rng() % 2);
    item.set_evictable(rng() % 2);
    item.set_size(Number(rng));
    item.set_owner(Number(rng));
  }
}
void Fill(pb::UpdateRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  out.set_key(Key(rng));
  out.set_only_if_absent(rng() % 2);
  out.set_ttl_ms(Number(rng));
  out.set_timeout_ms(Number32(rng));
  out.set_discarded(Number(rng));
}
void Fill(pb::UpdateAnswer& out, Rng& rng) { out.set_version(Number(rng)); }
void Fill(pb::InvalidateRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  out.set_key(Key(rng));
  out.set_version(Number(rng));
}
void Fill(pb::PromoteRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  out.set_key(Key(rng));
  out.set_version(Number(rng));
}
void Fill(pb::ExpireRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  out.set_key(Key(rng));
  out.set_ttl_ms(Number(rng));
  out.set_timeout_ms(Number32(rng));
}
void Fill(pb::SetExpiryRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  out.set_key(Key(rng));
  out.set_version(Number(rng));
  out.set_ttl_ms(Number(rng));
}
void Fill(pb::DeleteRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  out.set_key(Key(rng));
  out.set_timeout_ms(Number32(rng));
}
void Fill(pb::DeleteAnswer& out, Rng& rng) { out.set_existed(rng() % 2); }
void Fill(pb::ExistRequest& out, Rng& rng) {
  out.set_epoch(Number(rng));
  for (int i = rng() % 4; i > 0; --i) out.add_keys(Key(rng));
  out.set_timeout_ms(Number32(rng));
}
void Fill(pb::ExistAnswer& out, Rng& rng) {
  for (int i = rng() % 20; i > 0; --i) out.add_exists(rng() % 2);
}
template <typename Entries>
void FillEntries(Entries& out, Rng& rng) {
  out.set_epoch(Number(rng));
  for (int i = rng() % 4; i > 0; --i) {
    pb::Entry& entry = *out.add_entries();
    entry.set_key(Key(rng));
    entry.set_version(Number(rng));
    entry.set_size(Number(rng));
    entry.set_primary(rng() % 2);
    entry.set_ttl_remaining_ms(Number(rng));
    entry.set_withdrawn(rng() % 2);
  }
}
void Fill(pb::DroppedNotice& out, Rng& rng) { FillEntries(out, rng); }
void Fill(pb::EntriesRequest& out, Rng& rng) { FillEntries(out, rng); }
void Fill(pb::CollectRequest& out, Rng& rng) { out.set_epoch(Number(rng)); }

template <typename OursAndProtocs>
class PeerMessages : public testing::Test {};
using All = testing::Types<
    std::pair<PeerGet, pb::GetRequest>, std::pair<PeerFetch, pb::FetchRequest>,
    std::pair<PeerGetAnswer, pb::GetAnswer>, std::pair<PeerGetMany, pb::GetManyRequest>,
    std::pair<PeerGetManyAnswer, pb::GetManyAnswer>, std::pair<PeerUpdate, pb::UpdateRequest>,
    std::pair<PeerUpdateAnswer, pb::UpdateAnswer>, std::pair<PeerVersionedKey, pb::InvalidateRequest>,
    std::pair<PeerVersionedKey, pb::PromoteRequest>, std::pair<PeerExpire, pb::ExpireRequest>,
    std::pair<PeerSetExpiry, pb::SetExpiryRequest>, std::pair<PeerDelete, pb::DeleteRequest>,
    std::pair<PeerDeleteAnswer, pb::DeleteAnswer>, std::pair<PeerExist, pb::ExistRequest>,
    std::pair<PeerExistAnswer, pb::ExistAnswer>, std::pair<PeerEntries, pb::DroppedNotice>,
    std::pair<PeerEntries, pb::EntriesRequest>, std::pair<PeerCollect, pb::CollectRequest>>;
TYPED_TEST_SUITE(PeerMessages, All);

TYPED_TEST(PeerMessages, AreWhatTheContractSays) {
  using Ours = typename TypeParam::first_type;
  using Protocs = typename TypeParam::second_type;
  Rng rng(20);
  for (int round = 0; round < 200; ++round) {
    Protocs sent;
    Fill(sent, rng);
    auto ours = Ours::Decode(sent.SerializeAsString());
    ASSERT_TRUE(ours.ok()) << ours.status().ToString();
    Protocs back;
    ASSERT_TRUE(back.ParseFromString(ours->Encode()));
    ASSERT_EQ(back.SerializeAsString(), sent.SerializeAsString());
  }
}

TYPED_TEST(PeerMessages, CutOrGarbledBytesAreRefusedOrReadButNeverHarm) {
  using Ours = typename TypeParam::first_type;
  using Protocs = typename TypeParam::second_type;
  Rng rng(21);
  Protocs sent;
  Fill(sent, rng);
  const std::string whole = sent.SerializeAsString();
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto cut = Ours::Decode(std::string_view(whole).substr(0, size));
    EXPECT_TRUE(cut.ok() || cut.status().GetCode() == K_INVALID);
  }
  for (int round = 0; round < 2000; ++round) {
    std::string noise(rng() % 64, ' ');
    for (char& c : noise) c = static_cast<char>(rng());
    const auto read = Ours::Decode(noise);
    EXPECT_TRUE(read.ok() || read.status().GetCode() == K_INVALID);
  }
}

TEST(PeerGetManyAnswer, AnOutcomeOfALaterVersionMeansThatTheKeyMustBeAskedForByItself) {
  for (const uint32_t outcome : {5U, 4'000'000'000U}) {
    pb::GetManyAnswer sent;
    sent.add_items()->set_outcome(outcome);
    const auto read = PeerGetManyAnswer::Decode(sent.SerializeAsString());
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->items[0].outcome, PeerGetManyAnswer::Outcome::kAlone);
  }
}

}  // namespace
}  // namespace datasystem::proto
