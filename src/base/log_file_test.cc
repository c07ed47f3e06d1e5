#include "base/log_file_test.h"

#include <sys/stat.h>

#include <fstream>

namespace datasystem {
namespace {

namespace fs = std::filesystem;

class LogFileTest : public LogFolderTest {};

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
