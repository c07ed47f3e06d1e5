#include "shm/message_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <semaphore>
#include <string>
#include <thread>

namespace datasystem::shm {
namespace {

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

class MessageRing : public testing::Test {
 protected:
  bool Write(const std::string& text) {
    const std::span<const std::byte> part = Bytes(text);
    return writer_.Write({&part, 1}, wake_);
  }
  std::string ReadAll() {
    std::string text(reader_.Available().value(), ' ');
    reader_.Read(std::as_writable_bytes(std::span(text)));
    return text;
  }

  std::unique_ptr<RingLayout> ring_ = std::make_unique<RingLayout>();
  RingWriter writer_{*ring_};
  RingReader reader_{*ring_};
  bool wake_ = false;
};

TEST_F(MessageRing, CarriesMessagesOfManyPartsAroundItsEnd) {
  for (int round = 0; round < 100; ++round) {
    const std::string a(round * 37 % 5000, 'a'), b(round * 91 % 7000, 'b');
    const std::array parts = {Bytes(a), Bytes(b)};
    EXPECT_FALSE(reader_.HasBytes());
    ASSERT_TRUE(writer_.Write(parts, wake_));
    EXPECT_FALSE(wake_) << "nobody said that it sleeps";
    EXPECT_EQ(ReadAll(), a + b);
  }
}

TEST_F(MessageRing, TakesAMessageWholeOrNotAtAll) {
  EXPECT_FALSE(Write(std::string(RingLayout::kCapacity + 1, 'x')));
  EXPECT_TRUE(Write(std::string(RingLayout::kCapacity - 1, 'x')));
  EXPECT_FALSE(Write("yy"));
  EXPECT_TRUE(Write("y"));
  EXPECT_EQ(ReadAll().size(), RingLayout::kCapacity);
  EXPECT_TRUE(Write("zz"));
  EXPECT_EQ(ReadAll(), "zz");
}

TEST_F(MessageRing, AskForAWakeUpOnceForEachSleep) {
  reader_.SayAsleep();
  ASSERT_TRUE(Write("1"));
  EXPECT_TRUE(wake_);
  ASSERT_TRUE(Write("2"));
  EXPECT_FALSE(wake_) << "it has been woken";
  reader_.SayAsleep();
  reader_.SayAwake();
  ASSERT_TRUE(Write("3"));
  EXPECT_FALSE(wake_);
  EXPECT_EQ(ReadAll(), "123");
}

TEST_F(MessageRing, PositionsThatAreOutOfRangeAreReported) {
  for (const uint64_t nonsense : {RingLayout::kCapacity + 1, ~uint64_t{0}, uint64_t{1} << 63}) {
    ring_->written = nonsense;
    EXPECT_FALSE(reader_.Available());
  }
  // The reader says that it has read what was never written.
  for (const uint64_t nonsense : {RingLayout::kCapacity, uint64_t{1} << 63}) {
    ring_->read = nonsense;
    EXPECT_FALSE(Write("x"));
  }
}

// Neither a byte nor a wake-up is ever lost, however the two sides meet.
TEST_F(MessageRing, AReaderThatSleepsIsAlwaysWoken) {
  constexpr int kMessages = 200'000;
  std::counting_semaphore<> bell(0);
  std::thread other([&] {
    std::mt19937 random(7);
    uint8_t expected = 0;
    for (uint64_t left = uint64_t{kMessages} * 3; left > 0;) {
      while (!reader_.HasBytes()) {
        reader_.SayAsleep();
        if (reader_.HasBytes()) {
          reader_.SayAwake();
          break;
        }
        ASSERT_TRUE(bell.try_acquire_for(std::chrono::seconds(20))) << "a wake-up was lost";
      }
      for (const char c : ReadAll()) {
        ASSERT_EQ(static_cast<uint8_t>(c), expected++);
        --left;
      }
      if (random() % 64 == 0) std::this_thread::yield();
    }
  });
  std::mt19937 random(8);
  uint8_t next = 0;
  for (int i = 0; i < kMessages; ++i) {
    std::string message(3, ' ');
    for (char& c : message) c = static_cast<char>(next++);
    while (!Write(message)) std::this_thread::yield();
    if (wake_) bell.release();
    if (random() % 256 == 0) std::this_thread::yield();
  }
  other.join();
}

}  // namespace
}  // namespace datasystem::shm
