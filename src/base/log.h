// Logging of the worker. One line an event, lower case, fields last: "joined cluster epoch=12 members=3".
// error: an operator must act; warning: degraded, still correct; info: a handful per state change;
// debug: per object or connection. Nothing per request, never values or secrets.
// Threads: any.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

namespace datasystem {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

struct LogOptions {
  std::string directory;       // empty: standard error only
  std::string file_prefix;     // files are <prefix>.INFO.log, <prefix>.WARNING.log, <prefix>.ERROR.log
  std::string cluster_name;    // last field of each line's prefix
  LogLevel level = LogLevel::kInfo;
  uint32_t max_file_size_mb = 400;
  unsigned file_mode = 0640;
  // Copied to standard error from this level on; without files, all is.
  LogLevel stderr_level = LogLevel::kError;
};

// The log files of these options, without .log. Full ones become <path>.<time>.log.
std::vector<std::string> LogPaths(const LogOptions& options);

// Opens the log files. Before it is called, lines of warning and above go to standard error.
// Returns an empty string, or what went wrong (with the path).
std::string StartLogging(const LogOptions& options);
// For a flag that changed. Threads: any.
void SetLogLevel(LogLevel level);
// Lines go to the files alone: what follows is told to the user in another way.
void LeaveStderr();

bool LogEnabled(LogLevel level);
void WriteLog(LogLevel level, const char* file, int line, std::string_view message);

template <typename... Args>
void FormatLog(LogLevel level, const char* file, int line, fmt::format_string<Args...> format,
               Args&&... args) {
  WriteLog(level, file, line, fmt::vformat(format, fmt::make_format_args(args...)));
}

}  // namespace datasystem

#define DS_LOG(level, ...)                                                       \
  (::datasystem::LogEnabled(level)                                               \
       ? ::datasystem::FormatLog(level, __FILE__, __LINE__, __VA_ARGS__)         \
       : (void)0)
#define LOG_DEBUG(...) DS_LOG(::datasystem::LogLevel::kDebug, __VA_ARGS__)
#define LOG_INFO(...) DS_LOG(::datasystem::LogLevel::kInfo, __VA_ARGS__)
#define LOG_WARNING(...) DS_LOG(::datasystem::LogLevel::kWarning, __VA_ARGS__)
#define LOG_ERROR(...) DS_LOG(::datasystem::LogLevel::kError, __VA_ARGS__)
