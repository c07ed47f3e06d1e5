#include "base/log_file.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

namespace datasystem {
namespace {

constexpr std::string_view kPlain = ".log";

std::string TimeForName() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const auto micros = duration_cast<microseconds>(now.time_since_epoch()).count() % 1'000'000;
  return fmt::format("{:%Y%m%d%H%M%S}{:06}", fmt::localtime(system_clock::to_time_t(now)), micros);
}

}  // namespace

LogFile::LogFile(Options options) : options_(std::move(options)) {
  Open();
  if (!fd_.valid()) throw spdlog::spdlog_ex("Failed opening file " + options_.path + ".log", errno);
}

void LogFile::Open() {
  const std::string name = options_.path + std::string(kPlain);
  fd_ = UniqueFd(::open(name.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, options_.mode));
  if (!fd_.valid()) return;
  ::fchmod(fd_.get(), options_.mode);  // whatever the umask, or an earlier life, made of it
  struct stat status {};
  size_ = ::fstat(fd_.get(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

void LogFile::Roll() {
  const std::string name = options_.path + std::string(kPlain);
  ::rename(name.c_str(), fmt::format("{}.{}{}", options_.path, TimeForName(), kPlain).c_str());
  UniqueFd full = std::move(fd_);
  Open();
  // A folder that went away: better the old file, unseen, than none.
  if (!fd_.valid()) fd_ = std::move(full);
}

void LogFile::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  if (size_ > 0 && size_ + line.size() > options_.bytes_max) Roll();
  const ssize_t written = ::write(fd_.get(), line.data(), line.size());
  if (written > 0) size_ += static_cast<uint64_t>(written);
}

}  // namespace datasystem
