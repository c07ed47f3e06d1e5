// Lines are formatted here (fields of the access-log family joined by " | ") and spdlog only writes and
// rotates files. A level's file also gets the levels above it.
#include "base/log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>

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

// Process-wide on purpose: logging must work from the first line of main to the last.
struct LogState {
  std::atomic<int> level{static_cast<int>(LogLevel::kWarning)};
  std::shared_ptr<spdlog::logger> logger =
      std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_sink_mt>());
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

std::string StartLogging(const LogOptions& options) {
  LogState& state = State();
  state.host = HostName();
  state.cluster = options.cluster_name;
  std::vector<spdlog::sink_ptr> sinks;
  try {
    if (!options.directory.empty()) {
      for (auto [level, name] : {std::pair{LogLevel::kInfo, "INFO"}, {LogLevel::kWarning, "WARNING"},
                                 {LogLevel::kError, "ERROR"}}) {
        auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(
            options.directory + "/" + options.file_prefix + "." + name + ".log",
            size_t{options.max_file_size_mb} << 20, options.max_files == 0 ? 1000 : options.max_files);
        sink->set_level(level == LogLevel::kInfo ? spdlog::level::trace : ToSpdlog(level));
        sinks.push_back(sink);
      }
    }
  } catch (const spdlog::spdlog_ex& error) {
    return error.what();
  }
  if (options.to_stderr || sinks.empty()) {
    sinks.push_back(std::make_shared<spdlog::sinks::stderr_sink_mt>());
  }
  auto logger = std::make_shared<spdlog::logger>("", sinks.begin(), sinks.end());
  logger->set_level(spdlog::level::trace);
  logger->set_pattern("%Y-%m-%dT%H:%M:%S.%f | %L | %v");
  logger->flush_on(spdlog::level::info);
  state.logger = std::move(logger);
  state.level = static_cast<int>(options.level);
  return "";
}

void FlushLogs() { State().logger->flush(); }

bool LogEnabled(LogLevel level) { return static_cast<int>(level) >= State().level.load(); }

void WriteLog(LogLevel level, const char* file, int line, std::string_view message) {
  const LogState& state = State();
  state.logger->log(ToSpdlog(level),
                    fmt::format("{}:{} | {} | {}:{} |  | {} | {}", BaseName(file), line, state.host,
                                ::getpid(), ::syscall(SYS_gettid), state.cluster, Printable(message)));
}

}  // namespace datasystem
