#include "worker/client_session.h"

#include <gtest/gtest.h>

#include "shm/cache_memory.h"

namespace datasystem::worker {
namespace {

constexpr TimePoint kGranted{std::chrono::seconds(100)};

class ClientBuffersTest : public testing::Test {
 protected:
  shm::Extent Memory(uint64_t size = 5000) { return memory_->Allocate(size).value(); }
  proto::Lease Lease(uint64_t size = 5000) {
    shm::Extent extent = Memory(size);
    return buffers_.AddLease(extent, kGranted).value();
  }
  std::atomic<uint64_t>& Word(const proto::Lease& lease) { return control_.layout().leases[lease.slot]; }
  uint64_t allocated() const { return memory_->usage().allocated_bytes; }

  const std::unique_ptr<shm::CacheMemory> memory_ =
      shm::CacheMemory::Create({.size_bytes = 16 << 20, .head_room = [] { return shm::HeadRoom{}; }}).value();
  const shm::ControlSegment control_ = shm::ControlSegment::Create().value();
  ClientMemory all_;
  ClientBuffers buffers_{all_, &control_};
};

TEST_F(ClientBuffersTest, ABufferIsTakenOnceAndComesBackIfItIsReturned) {
  const uint64_t id = buffers_.Add(Memory());
  EXPECT_EQ(all_.buffer_bytes, 5000u);
  auto taken = buffers_.Take(id);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(buffers_.Take(id));
  EXPECT_EQ(all_.buffer_bytes, 0u);
  buffers_.Return(id, std::move(*taken));
  EXPECT_EQ(all_.buffer_bytes, 5000u);
  EXPECT_TRUE(buffers_.Take(id));
}

TEST_F(ClientBuffersTest, ABufferThatIsAbandonedWhileItIsSetDoesNotComeBack) {
  const uint64_t id = buffers_.Add(Memory());
  auto taken = buffers_.Take(id);
  buffers_.Drop(id);
  buffers_.Return(id, std::move(*taken));
  EXPECT_FALSE(buffers_.Take(id));
  EXPECT_EQ(all_.buffer_bytes, 0u);
}

TEST_F(ClientBuffersTest, ALeaseGoesToWhoChangesItsWordFirst) {
  const proto::Lease first = Lease();
  const proto::Lease second = Lease();
  EXPECT_TRUE(shm::LeaseWord::Take(Word(first), first.buffer_id));
  EXPECT_EQ(buffers_.TakeBackLeases(kGranted), 5000u);
  EXPECT_FALSE(shm::LeaseWord::Take(Word(second), second.buffer_id));
  EXPECT_EQ(all_.leased_bytes, 5000u);
  EXPECT_TRUE(buffers_.Take(first.buffer_id));
  EXPECT_FALSE(buffers_.Take(second.buffer_id));
  EXPECT_EQ(Word(first), 0u) << "the slot is free again";
  EXPECT_EQ(all_.leased_bytes, 0u);
}

TEST_F(ClientBuffersTest, WhatSessionsHoldTogetherIsKnownWithoutAskingEach) {
  {
    ClientBuffers other(all_, nullptr);
    other.Add(Memory());
    buffers_.Add(Memory());
    Lease(7000);
    EXPECT_EQ(all_.buffer_bytes, 10000u);
    EXPECT_EQ(all_.leased_bytes, 7000u);
  }
  EXPECT_EQ(all_.buffer_bytes, 5000u);
  buffers_.End();
  EXPECT_EQ(all_.buffer_bytes, 0u);
  EXPECT_EQ(all_.leased_bytes, 0u);
  EXPECT_EQ(allocated(), 0u);
  // A request that was under way when the session ended.
  buffers_.Add(Memory());
  EXPECT_EQ(all_.buffer_bytes, 5000u);
}

TEST_F(ClientBuffersTest, OnlyLeasesOfThatAgeAreTakenBack) {
  Lease();
  EXPECT_EQ(buffers_.TakeBackLeases(kGranted - std::chrono::nanoseconds(1)), 0u);
  EXPECT_EQ(buffers_.TakeBackLeases(kGranted), 5000u);
}

TEST_F(ClientBuffersTest, LeasesOfASessionAreFewAndTheirSlotsAreUsedAgain) {
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < ClientBuffers::kLeasesMax; ++i) Lease();
    shm::Extent extent = Memory();
    EXPECT_FALSE(buffers_.AddLease(extent, kGranted));
    EXPECT_TRUE(extent.valid()) << "the caller's still";
    extent = {};
    EXPECT_EQ(buffers_.TakeBackLeases(kGranted), 5000 * ClientBuffers::kLeasesMax);
  }
  EXPECT_EQ(allocated(), 0u);
}

TEST_F(ClientBuffersTest, NonsenseInALeasesWordKeepsItsMemoryOnlyAsLongAsTheSession) {
  const proto::Lease lease = Lease();
  Word(lease) = 0xDEADBEEF;
  EXPECT_EQ(buffers_.TakeBackLeases(kGranted), 0u);
  buffers_.End();
  EXPECT_EQ(allocated(), 0u);
}

TEST(ClientBuffers, WithoutSharedMemoryNothingIsLeased) {
  const auto memory =
      shm::CacheMemory::Create({.size_bytes = 16 << 20, .head_room = [] { return shm::HeadRoom{}; }}).value();
  ClientMemory all;
  ClientBuffers buffers(all, nullptr);
  shm::Extent extent = memory->Allocate(5000).value();
  EXPECT_FALSE(buffers.AddLease(extent, kGranted));
}

}  // namespace
}  // namespace datasystem::worker
