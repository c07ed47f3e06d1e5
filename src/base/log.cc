// Lines are formatted here (fields of the access-log family joined by " | ") and spdlog only passes them on to
// the files. A level's file also gets the levels above it.
#include "base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/log_file.h"

namespace datasystem {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

struct LevelFile {
  LogLevel level;
  const char* name;
};
constexpr LevelFile kLevelFiles[] = {
    {LogLevel::kInfo, "INFO"}, {LogLevel::kWarning, "WARNING"}, {LogLevel::kError, "ERROR"}};

// Process-wide on purpose: logging must work from the first line of main to the last.
struct LogState {
  std::atomic<int> level{static_cast<int>(LogLevel::kWarning)};
  std::shared_ptr<spdlog::logger> logger =
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  std::shared_ptr<spdlog::sinks::sink> standard_error;
  std::string host;
  std::string cluster;
};

LogState& State() {
  static LogState state;
  return state;
}

std::string HostName() {
  for (const char* name : {"POD_NAME", "HOSTNAME"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != 0) return value;
  }
  char host[256] = "localhost";
  ::gethostname(host, sizeof(host) - 1);
  return host;
}

// Text of strangers may be in a message: it must not be able to begin a line, or to move a terminal.
std::string Printable(std::string_view message) {
  std::string printable;
  printable.reserve(message.size());
  for (const char c : message) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      printable += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      printable += c;
    }
  }
  return printable;
}

const char* BaseName(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

}  // namespace

std::vector<std::string> LogPaths(const LogOptions& options) {
  std::vector<std::string> paths;
  if (options.directory.empty()) return paths;
  for (const LevelFile& file : kLevelFiles) {
    paths.push_back(fmt::format("{}/{}.{}", options.directory, options.file_prefix, file.name));
  }
  return paths;
}

std::string StartLogging(const LogOptions& options) {
  LogState& state = State();
  state.host = HostName();
  state.cluster = options.cluster_name;
  std::vector<spdlog::sink_ptr> sinks;
  try {
    for (size_t i = 0; const std::string& path : LogPaths(options)) {
      auto sink = std::make_shared<LogFile>(LogFile::Options{
          .path = path, .bytes_max = uint64_t{options.max_file_size_mb} << 20, .mode = options.file_mode});
      const LogLevel level = kLevelFiles[i++].level;
      sink->set_level(level == LogLevel::kInfo ? spdlog::level::trace : ToSpdlog(level));
      sinks.push_back(sink);
    }
  } catch (const spdlog::spdlog_ex& error) {
    return error.what();
  }
  state.standard_error = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  state.standard_error->set_level(sinks.empty() ? spdlog::level::trace : ToSpdlog(options.stderr_level));
  sinks.push_back(state.standard_error);
  auto logger = std::make_shared<spdlog::logger>("", sinks.begin(), sinks.end());
  logger->set_level(spdlog::level::trace);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%f | %L | %v");
  state.logger = std::move(logger);
  state.level = static_cast<int>(options.level);
  return "";
}

void SetLogLevel(LogLevel level) { State().level = static_cast<int>(level); }

void LeaveStderr() {
  if (State().standard_error) State().standard_error->set_level(spdlog::level::off);
}

bool LogEnabled(LogLevel level) { return static_cast<int>(level) >= State().level.load(); }

void WriteLog(LogLevel level, const char* file, int line, std::string_view message) {
  const LogState& state = State();
  state.logger->log(ToSpdlog(level),
                    fmt::format("{}:{} | {} | {}:{} |  | {} | {}", BaseName(file), line, state.host,
                                ::getpid(), ::syscall(SYS_gettid), state.cluster, Printable(message)));
}

}  // namespace datasystem
