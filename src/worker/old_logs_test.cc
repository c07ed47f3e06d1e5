#include "worker/old_logs.h"

#include <zlib.h>

#include <fstream>
#include <vector>

#include "base/log_file_test.h"

namespace datasystem::worker {
namespace {

namespace fs = std::filesystem;

class OldLogsTest : public LogFolderTest {
 protected:
  std::vector<std::string> FullFiles() const {
    std::vector<std::string> full;
    for (const std::string& name : Files()) {
      if (name.starts_with("w.INFO.2")) full.push_back(name);
    }
    return full;
  }
};

TEST_F(OldLogsTest, TheNewestFullFilesAreKeptAndNothingElseIsTouched) {
  WriteLines(23);
  for (const char* name : {"w.INFO.txt", "w.INFO.1a.log", "x.INFO.20200101000000.log"}) {
    std::ofstream(folder_ / name) << "not ours";
  }
  const std::vector<std::string> full = FullFiles();
  ASSERT_EQ(full.size(), 4U);
  EXPECT_EQ(TidyOldLogs(path_, {.files_max = 2, .compress = false}), "");
  EXPECT_EQ(Files(), (std::set<std::string>{"w.INFO.log", full[2], full[3], "w.INFO.txt", "w.INFO.1a.log",
                                            "x.INFO.20200101000000.log"}));
  EXPECT_EQ(TidyOldLogs(path_, {.files_max = 0, .compress = false}), "");
  EXPECT_EQ(Files().size(), 6U);
}

TEST_F(OldLogsTest, FullFilesAreCompressedAndKeepModeAndAge) {
  WriteLines(6);
  const std::string full = FullFiles().front();
  const auto age = fs::last_write_time(folder_ / full);
  EXPECT_EQ(TidyOldLogs(path_, {}), "");
  EXPECT_EQ(Files(), (std::set<std::string>{"w.INFO.log", full + ".gz"}));
  EXPECT_EQ(fs::last_write_time(folder_ / (full + ".gz")), age);
  EXPECT_EQ(fs::status(folder_ / (full + ".gz")).permissions(), static_cast<fs::perms>(0604));
  gzFile file = ::gzopen((folder_ / (full + ".gz")).c_str(), "rb");
  char text[1000];
  EXPECT_EQ(::gzread(file, text, sizeof(text)), 500);
  ::gzclose(file);
  EXPECT_EQ(std::string_view(text, 100), std::string(99, 'a') + "\n");
}

TEST_F(OldLogsTest, FilesThatAreTooOldGo) {
  WriteLines(11);
  EXPECT_EQ(TidyOldLogs(path_, {.files_max = 0, .compress = false}), "");
  const std::string oldest = FullFiles().front();
  fs::last_write_time(folder_ / oldest, fs::file_time_type::clock::now() - std::chrono::hours(49));
  EXPECT_EQ(TidyOldLogs(path_, {.files_max = 0, .retention_days = 3, .compress = false}), "");
  EXPECT_TRUE(Files().contains(oldest));
  EXPECT_EQ(TidyOldLogs(path_, {.files_max = 0, .retention_days = 2, .compress = false}), "");
  EXPECT_FALSE(Files().contains(oldest));
  EXPECT_EQ(Files().size(), 2U);
}

TEST_F(OldLogsTest, AFolderThatIsGoneIsReported) {
  EXPECT_NE(TidyOldLogs(folder_ / "gone" / "w.INFO", {}), "");
}

}  // namespace
}  // namespace datasystem::worker
