#include "worker/liveness.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace datasystem::worker {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

class LivenessTest : public ::testing::Test {
 protected:
  LivenessTest() {
    std::string pattern = fs::temp_directory_path() / "liveness-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ / "probe" / "liveness";
    loop_thread_ = std::thread([this] { loop_.Run(); });
  }
  ~LivenessTest() override {
    hang_ = false;
    loop_.Stop();
    loop_thread_.join();
    fs::remove_all(folder_);
  }

  std::string Text() const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  bool Says(const std::string& what) const {
    for (int round = 0; round < 1500; ++round) {
      if (Text().starts_with(what)) return true;
      std::this_thread::sleep_for(10ms);
    }
    return false;
  }
  void Hang() {
    hang_ = true;
    loop_.Post([this] {
      while (hang_) std::this_thread::sleep_for(1ms);
    });
  }

  fs::path folder_;
  fs::path path_;
  EventLoop loop_;
  std::thread loop_thread_;
  std::atomic<bool> hang_ = false;
};

TEST_F(LivenessTest, SaysThatALoopHangsAndThatItAnswersAgain) {
  Liveness liveness(loop_, {.path = path_, .timeout = 300ms, .interval = 20ms});
  ASSERT_TRUE(liveness.Prepare().IsOk());
  liveness.Start();
  EXPECT_TRUE(Says("liveness check success\n"));
  struct stat file {}, folder {};
  ::stat(path_.c_str(), &file);
  ::stat(path_.parent_path().c_str(), &folder);
  EXPECT_EQ(file.st_mode & 07777, 0600U);
  EXPECT_EQ(folder.st_mode & 07777, 0700U);
  Hang();
  EXPECT_TRUE(Says("liveness check failed: the event loop has not answered for"));
  hang_ = false;
  EXPECT_TRUE(Says("liveness check success\n"));
  liveness.Stop();
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(LivenessTest, ABusyLoopIsAlive) {
  Liveness liveness(loop_, {.path = path_, .timeout = 3s, .interval = 10ms});
  ASSERT_TRUE(liveness.Prepare().IsOk());
  std::atomic<bool> busy = true;
  std::atomic<int> runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    if (busy) loop_.Post([&] { again(); });
  };
  for (int i = 0; i < 1000; ++i) loop_.Post([&] { again(); });
  liveness.Start();
  ASSERT_TRUE(Says("liveness check success\n"));
  const auto first = fs::last_write_time(path_);
  bool rewritten = false;
  for (int round = 0; round < 1500 && !rewritten; ++round) {
    std::error_code replaced;
    const auto now = fs::last_write_time(path_, replaced);
    rewritten = !replaced && now > first;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(rewritten);
  EXPECT_GT(runs, 1000);
  EXPECT_EQ(Text(), "liveness check success\n");
  busy = false;
  liveness.Stop();
}

TEST_F(LivenessTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  Liveness liveness(loop_, {.path = folder_ / "file" / "liveness", .timeout = 1s});
  EXPECT_NE(liveness.Prepare().GetMsg().find("file/liveness"), std::string::npos);
}

TEST_F(LivenessTest, StopEndsAtOnceWhileTheLoopHangs) {
  Liveness liveness(loop_, {.path = path_, .timeout = 1h, .interval = 1h});
  ASSERT_TRUE(liveness.Prepare().IsOk());
  Hang();
  liveness.Start();
  liveness.Stop();
  EXPECT_FALSE(fs::exists(path_));
}

}  // namespace
}  // namespace datasystem::worker
