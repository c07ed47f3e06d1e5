#include "base/log_file.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

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

  std::vector<std::string> FullFiles() const {
    std::vector<std::string> full;
    for (const std::string& name : Files()) {
      if (name.starts_with("w.INFO.2")) full.push_back(name);
    }
    return full;
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

TEST_F(LogFileTest, TheNewestFullFilesAreKeptAndNothingElseIsTouched) {
  WriteLines(23);
  for (const char* name : {"w.INFO.txt", "w.INFO.1a.log", "x.INFO.20200101000000.log"}) {
    std::ofstream(folder_ / name) << "not ours";
  }
  const std::vector<std::string> full = FullFiles();
  ASSERT_EQ(full.size(), 4U);
  EXPECT_EQ(TidyLogFiles(path_, {.files_max = 2, .compress = false}), "");
  EXPECT_EQ(Files(), (std::set<std::string>{"w.INFO.log", full[2], full[3], "w.INFO.txt", "w.INFO.1a.log",
                                            "x.INFO.20200101000000.log"}));
  EXPECT_EQ(TidyLogFiles(path_, {.files_max = 0, .compress = false}), "");
  EXPECT_EQ(Files().size(), 6U);
}

TEST_F(LogFileTest, FullFilesAreCompressedAndKeepModeAndAge) {
  WriteLines(6);
  const std::string full = FullFiles().front();
  const auto age = fs::last_write_time(folder_ / full);
  EXPECT_EQ(TidyLogFiles(path_, {}), "");
  EXPECT_EQ(Files(), (std::set<std::string>{"w.INFO.log", full + ".gz"}));
  EXPECT_EQ(fs::last_write_time(folder_ / (full + ".gz")), age);
  EXPECT_EQ(fs::status(folder_ / (full + ".gz")).permissions(), static_cast<fs::perms>(0604));
  gzFile file = ::gzopen((folder_ / (full + ".gz")).c_str(), "rb");
  char text[1000];
  EXPECT_EQ(::gzread(file, text, sizeof(text)), 500);
  ::gzclose(file);
  EXPECT_EQ(std::string_view(text, 100), std::string(99, 'a') + "\n");
}

TEST_F(LogFileTest, FilesThatAreTooOldGo) {
  WriteLines(11);
  EXPECT_EQ(TidyLogFiles(path_, {.files_max = 0, .compress = false}), "");
  const std::string oldest = FullFiles().front();
  fs::last_write_time(folder_ / oldest, fs::file_time_type::clock::now() - std::chrono::hours(49));
  EXPECT_EQ(TidyLogFiles(path_, {.files_max = 0, .retention_days = 3, .compress = false}), "");
  EXPECT_TRUE(Files().contains(oldest));
  EXPECT_EQ(TidyLogFiles(path_, {.files_max = 0, .retention_days = 2, .compress = false}), "");
  EXPECT_FALSE(Files().contains(oldest));
  EXPECT_EQ(Files().size(), 2U);
}

TEST_F(LogFileTest, AFolderThatIsGoneIsReported) {
  EXPECT_NE(TidyLogFiles(folder_ / "gone" / "w.INFO", {}), "");
  EXPECT_THROW(LogFile({.path = folder_ / "gone" / "w.INFO", .bytes_max = 1}), spdlog::spdlog_ex);
}

}  // namespace
}  // namespace datasystem
