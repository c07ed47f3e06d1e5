#include "config/live_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "config/flag_row.h"

namespace datasystem::config {
namespace {

constexpr size_t kBytesMax = 1 << 20;

int64_t ToNs(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

// Never waits: a pipe is opened without its writer, and then refused.
Result<std::string> ReadFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return errors::FromErrno(errno, "cannot be read");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errors::FromErrno(errno, "cannot be read");
  if (!S_ISREG(status.st_mode)) return errors::Invalid("is no regular file");
  std::string text(kBytesMax + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errors::FromErrno(errno, "cannot be read");
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > kBytesMax) return errors::Invalid("has more than 1 MiB");
  text.resize(size);
  return text;
}

}  // namespace

LiveFile::LiveFile(std::string path, FlagValues command_line)
    : path_(std::move(path)), command_line_(command_line), in_force_(std::move(command_line)) {}

LiveFile::State LiveFile::StateOf(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return {.error = errno == ENOTDIR ? ENOENT : errno};
  }
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .modified_ns = ToNs(status.st_mtim),
          .changed_ns = ToNs(status.st_ctim)};
}

std::optional<LiveFile::News> LiveFile::Look() {
  if (path_.empty()) return std::nullopt;
  // Before the file is read: what is written to it meanwhile is seen at the next look.
  const State state = StateOf(path_);
  if (seen_ == state) return std::nullopt;
  const bool first_look = !seen_;
  seen_ = state;
  const bool absent = state.error == ENOENT;
  if (absent && first_look) return std::nullopt;

  News news{in_force_, {}, {}};
  if (absent) {
    news.values = command_line_;
  } else {
    const Result<std::string> text = ReadFile(path_);
    if (!text.ok()) {
      news.mistakes.push_back(
          fmt::format("{} {}; the flags stay as they are", path_, text.status().GetMsg()));
      return news;
    }
    news.values = command_line_.WithLive(*text, news.mistakes);
    for (std::string& mistake : news.mistakes) mistake = fmt::format("{}: {}", path_, mistake);
    for (const std::string& rule : BrokenRules(news.values)) {
      news.mistakes.push_back(
          fmt::format("{}: {}; nothing of the file is taken", path_, rule));
      news.values = in_force_;
    }
  }
  news.changes = news.values.DifferentFrom(in_force_);
  in_force_ = news.values;
  return news;
}

}  // namespace datasystem::config
