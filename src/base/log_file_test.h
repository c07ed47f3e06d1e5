// For tests: a folder with log files that are set aside every five lines.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <filesystem>
#include <set>
#include <string>

#include "base/log_file.h"

namespace datasystem {

class LogFolderTest : public ::testing::Test {
 protected:
  LogFolderTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "log-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ / "w.INFO";
  }
  ~LogFolderTest() override { std::filesystem::remove_all(folder_); }

  // Lines of 100 bytes, five to a file.
  void WriteLines(int count) {
    auto sink =
        std::make_shared<LogFile>(LogFile::Options{.path = path_, .bytes_max = 500, .mode = 0604});
    spdlog::logger logger("", sink);
    logger.set_pattern("%v");
    for (int i = 0; i < count; ++i) {
      logger.info(std::string(99, static_cast<char>('a' + i % 26)));
    }
  }
  std::set<std::string> Files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.insert(entry.path().filename());
    }
    return names;
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;
};

}  // namespace datasystem
