#include "cluster/hash_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace datasystem::cluster {
namespace {

constexpr int kSamples = 100'000;

std::vector<std::string> Workers(int count, int network = 0) {
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) {
    addresses.push_back("10." + std::to_string(network) + ".0." + std::to_string(i) + ":31501");
  }
  return addresses;
}

// Evenly spaced points of the hash space: exact shares up to 1/kSamples, without the noise of
// random keys.
std::vector<const std::string*> Owners(const HashRing& ring) {
  std::vector<const std::string*> owners;
  for (int i = 0; i < kSamples; ++i)
    owners.push_back(&ring.OwnerOfHash(i * (~uint64_t{0} / kSamples)));
  return owners;
}

TEST(HashRing, AJoinMovesAtMostItsShareAndOnlyToTheJoiner) {
  for (int network : {0, 77, 200}) {
    for (int workers = 1; workers <= 16; ++workers) {
      const HashRing before(Workers(workers, network));
      const HashRing after(Workers(workers + 1, network));
      const std::string joiner = Workers(workers + 1, network).back();
      const auto old_owners = Owners(before), new_owners = Owners(after);
      int moved = 0;
      for (int i = 0; i < kSamples; ++i) {
        if (*old_owners[i] == *new_owners[i]) continue;
        ++moved;
        ASSERT_EQ(*new_owners[i], joiner);
      }
      EXPECT_LE(moved, kSamples * 1.1 / (workers + 1)) << workers << " workers";
      EXPECT_GE(moved, kSamples * 0.9 / (workers + 1)) << workers << " workers";
    }
  }
}

TEST(HashRing, SpreadsKeysEvenlyOverSixteenWorkers) {
  const HashRing ring(Workers(16));
  std::map<std::string, int> points, keys;
  for (const std::string* owner : Owners(ring)) ++points[*owner];
  for (int i = 0; i < kSamples; ++i) ++keys[ring.OwnerOf("user/" + std::to_string(i))];
  for (const std::string& address : ring.addresses()) {
    EXPECT_NEAR(points[address], kSamples / 16.0, kSamples / 16.0 * 0.1) << address;
    EXPECT_NEAR(keys[address], kSamples / 16.0, kSamples / 16.0 * 0.1) << address;
  }
}

TEST(HashRing, DoesNotDependOnTheOrderOrOnDoubles) {
  std::vector<std::string> mixed = Workers(7);
  mixed.push_back(mixed[3]);
  std::shuffle(mixed.begin(), mixed.end(), std::mt19937(7));
  const HashRing sorted(Workers(7)), shuffled(mixed);
  EXPECT_EQ(shuffled.addresses(), sorted.addresses());
  const auto expected = Owners(sorted), actual = Owners(shuffled);
  for (int i = 0; i < kSamples; ++i) ASSERT_EQ(*actual[i], *expected[i]);
}

TEST(HashRing, CoversBothEndsOfTheHashSpace) {
  const HashRing one(Workers(1)), many(Workers(5));
  EXPECT_EQ(one.OwnerOfHash(0), "10.0.0.0:31501");
  EXPECT_EQ(one.OwnerOfHash(~uint64_t{0}), "10.0.0.0:31501");
  // The circle closes: behind the last token comes the first.
  EXPECT_EQ(many.OwnerOfHash(~uint64_t{0}), many.OwnerOfHash(0));
}

// Workers of one cluster may be of different builds: the ring is part of the protocol.
TEST(HashRing, PlacesKnownKeysWhereEveryBuildPlacesThem) {
  const HashRing ring(Workers(5));
  EXPECT_EQ(HashRing::Place("key"), 13540649951185429987u);
  std::string owners;
  for (int i = 0; i < 20; ++i) owners += ring.OwnerOf("key" + std::to_string(i))[7];
  EXPECT_EQ(owners, "14414101321122340433");
}

TEST(HashRing, IsEmptyWithoutWorkers) {
  EXPECT_TRUE(HashRing().empty());
  EXPECT_TRUE(HashRing(std::vector<std::string>{}).empty());
  EXPECT_DEATH(HashRing().OwnerOf("key"), "empty");
}

}  // namespace
}  // namespace datasystem::cluster
