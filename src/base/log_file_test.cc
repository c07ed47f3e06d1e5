#include "base/log_file.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>

namespace datasystem {
namespace {

namespace fs = std::filesystem;

class LogFileTest : public ::testing::Test {
 protected:
  LogFileTest() {
    std::string pattern = fs::temp_directory_path() / "log-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ / "w.INFO";
  }
  ~LogFileTest() override { fs::remove_all(folder_); }

  // Lines of 100 bytes, five to a file.
  void WriteLines(int count) {
    auto sink = std::make_shared<LogFile>(LogFile::Options{.path = path_, .bytes_max = 500, .mode = 0604});
    spdlog::logger logger("", sink);
    logger.set_pattern("%v");
    for (int i = 0; i < count; ++i) logger.info(std::string(99, static_cast<char>('a' + i % 26)));
  }
  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename());
    return names;
  }

  fs::path folder_;
  fs::path path_;
};

TEST_F(LogFileTest, AFullFileIsSetAsideAndNoLineIsLostOrCut) {
  WriteLines(23);
  uintmax_t bytes = 0;
  for (const std::string& name : Files()) {
    bytes += fs::file_size(folder_ / name);
    EXPECT_LE(fs::file_size(folder_ / name), 500U);
    EXPECT_EQ(fs::file_size(folder_ / name) % 100, 0U);
  }
  EXPECT_EQ(Files().size(), 5U);
  EXPECT_EQ(bytes, 2300U);
}

TEST_F(LogFileTest, HasTheModeItWasGivenWhateverTheUmask) {
  const mode_t umask = ::umask(0077);
  WriteLines(1);
  ::umask(umask);
  EXPECT_EQ(fs::status(folder_ / "w.INFO.log").permissions(), static_cast<fs::perms>(0604));
}

TEST_F(LogFileTest, AnotherLifeGoesOnInTheSameFile) {
  WriteLines(2);
  WriteLines(2);
  EXPECT_EQ(fs::file_size(folder_ / "w.INFO.log"), 400U);
}

TEST_F(LogFileTest, AFolderThatIsGoneIsAnError) {
  EXPECT_THROW(LogFile({.path = folder_ / "gone" / "w.INFO", .bytes_max = 1}), spdlog::spdlog_ex);
}

}  // namespace
}  // namespace datasystem
