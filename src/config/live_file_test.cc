#include "config/live_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace datasystem::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
namespace fs = std::filesystem;

class LiveFileTest : public ::testing::Test {
 protected:
  LiveFileTest() {
    std::string pattern = fs::temp_directory_path() / "live-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ / "flags";
    char name[] = "worker", verbosity[] = "--v=2";
    char* argv[] = {name, verbosity};
    command_line_ = *FlagValues::Parse(2, argv);
  }
  ~LiveFileTest() override { fs::remove_all(folder_); }

  // Another file each time, as editors and ConfigMaps do it.
  void Write(const std::string& text) {
    std::ofstream(folder_ / "new") << text;
    fs::rename(folder_ / "new", path_);
  }
  LiveFile::News LookAt(const std::string& text) {
    Write(text);
    return file().Look().value();
  }
  LiveFile& file() {
    if (!file_) file_.emplace(path_, command_line_);
    return *file_;
  }

  fs::path folder_;
  fs::path path_;
  FlagValues command_line_;
  std::optional<LiveFile> file_;
};

TEST_F(LiveFileTest, IsReadOnceForEachChange) {
  Write("--minloglevel=1\n\t--heartbeat_interval_ms=500");
  const auto news = file().Look();
  ASSERT_TRUE(news);
  EXPECT_EQ(news->values.Get(kMinLogLevel), 1);
  EXPECT_EQ(news->values.Get(kHeartbeatIntervalMs), 500);
  EXPECT_EQ(news->values.Get(kVerbosity), 2);
  EXPECT_THAT(news->changes, ElementsAre("heartbeat_interval_ms=500", "minloglevel=1"));
  EXPECT_THAT(news->mistakes, IsEmpty());
  EXPECT_FALSE(file().Look());
}

TEST_F(LiveFileTest, AFlagThatItNoLongerNamesGoesBackToTheCommandLine) {
  EXPECT_EQ(LookAt("--v=0 --minloglevel=2").values.Get(kVerbosity), 0);
  const auto news = LookAt("--minloglevel=2");
  EXPECT_EQ(news.values.Get(kVerbosity), 2);
  EXPECT_THAT(news.changes, ElementsAre("v=2"));
  fs::remove(path_);
  EXPECT_THAT(file().Look()->changes, ElementsAre("minloglevel=0"));
  EXPECT_FALSE(file().Look());
}

TEST_F(LiveFileTest, MayAppearLater) {
  EXPECT_FALSE(file().Look());
  EXPECT_THAT(LookAt("--v=1").changes, ElementsAre("v=1"));
}

TEST_F(LiveFileTest, OnlyLiveFlagsAreTakenAndEachWrongWordIsNamed) {
  const auto news = LookAt(
      "--shared_memory_size_mb=9\n--v=1 --minloglevle=2 --minloglevel=7\nstray --v -=3 =\n");
  EXPECT_THAT(news.changes, ElementsAre("v=1"));
  EXPECT_THAT(news.mistakes,
              ElementsAre(HasSubstr("line 1: --shared_memory_size_mb cannot change"),
                          HasSubstr("line 2: unknown flag --minloglevle; did you mean --minloglevel?"),
                          HasSubstr("line 2: --minloglevel=7 is not allowed; allowed: 0 to 3"),
                          HasSubstr("line 3: a word is not of the form"), HasSubstr("line 3"),
                          HasSubstr("line 3"), HasSubstr("line 3")));
  EXPECT_THAT(news.mistakes[0], HasSubstr(path_.string()));
}

TEST_F(LiveFileTest, NothingIsTakenThatBreaksARuleBetweenFlags) {
  const auto news = LookAt("--heartbeat_interval_ms=60000 --v=1");
  EXPECT_THAT(news.changes, IsEmpty());
  EXPECT_THAT(news.mistakes, ElementsAre(HasSubstr("--heartbeat_interval_ms=60000 must be below")));
}

TEST_F(LiveFileTest, SecretsAreNotRepeated) {
  for (const auto& mistake :
       LookAt("--obs_secret_key=hunter2 --obs_secret_key hunter2 --obs_secrte_key=hunter2").mistakes) {
    EXPECT_THAT(mistake, Not(HasSubstr("hunter2")));
  }
}

TEST_F(LiveFileTest, ALinkThatLeadsElsewhereIsAnotherFile) {
  // As the files of a ConfigMap: flags -> ..data/flags, ..data -> ..1, replaced by a rename.
  for (const auto& [name, text] : {std::pair{"..1", "--v=1"}, {"..2", "--v=3"}}) {
    fs::create_directory(folder_ / name);
    std::ofstream(folder_ / name / "flags") << text;
  }
  fs::create_directory_symlink("..1", folder_ / "..data");
  fs::create_symlink("..data/flags", path_);
  EXPECT_EQ(file().Look()->values.Get(kVerbosity), 1);
  fs::create_directory_symlink("..2", folder_ / "..next");
  fs::rename(folder_ / "..next", folder_ / "..data");
  EXPECT_EQ(file().Look()->values.Get(kVerbosity), 3);
}

TEST_F(LiveFileTest, WhatCannotBeReadChangesNothingAndIsReportedOnce) {
  LookAt("--v=1");
  const auto refused = [this](const char* why) {
    const auto news = file().Look();
    ASSERT_TRUE(news) << why;
    EXPECT_EQ(news->values.Get(kVerbosity), 1) << why;
    EXPECT_THAT(news->mistakes, ElementsAre(HasSubstr(why)));
    EXPECT_FALSE(file().Look()) << why;
  };
  fs::remove(path_);
  fs::create_directory(path_);
  refused("no regular file");
  fs::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  refused("no regular file");
  fs::remove(path_);
  fs::create_symlink(path_, path_);
  refused("cannot be read");
  fs::remove(path_);
  Write(std::string((1 << 20) + 1, ' ') + "--v=2");
  refused("more than 1 MiB");
  if (::geteuid() != 0) {
    Write("--v=2");
    ::chmod(path_.c_str(), 0);
    refused("cannot be read");
  }
}

TEST_F(LiveFileTest, AFullMebibyteIsTaken) {
  EXPECT_EQ(LookAt(std::string((1 << 20) - 5, ' ') + "--v=1").values.Get(kVerbosity), 1);
}

TEST_F(LiveFileTest, BinaryNoiseIsNoFlag) {
  const auto news = LookAt(std::string("\0\xff--v=1\0 --\n=\x01", 15));
  EXPECT_THAT(news.changes, IsEmpty());
  EXPECT_THAT(news.mistakes, Not(IsEmpty()));
}

}  // namespace
}  // namespace datasystem::config
