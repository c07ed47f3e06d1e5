#include "worker/old_logs.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/unique_fd.h"

namespace datasystem::worker {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlain = ".log";
constexpr std::string_view kPacked = ".log.gz";

// Of the files that LogFile left, by the time in their names.
std::vector<fs::path> FullFiles(const fs::path& path, std::error_code& error) {
  const std::string prefix = path.filename().string() + ".";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    const size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const std::string_view end = rest.substr(digits);
    if (digits > 0 && (end == kPlain || end == kPacked)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

struct CloseGzip {
  void operator()(gzFile file) const { ::gzclose(file); }
};

std::string Compress(const fs::path& plain) {
  const std::string packed = plain.string() + ".gz", scratch = packed + ".new";
  const UniqueFd in(::open(plain.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!in.valid() || ::fstat(in.get(), &status) != 0) return "cannot read " + plain.string();
  UniqueFd out(::open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!out.valid()) return "cannot write " + scratch;
  ::fchmod(out.get(), status.st_mode & 07777);
  gzFile opened = ::gzdopen(out.get(), "wb");
  if (opened == nullptr) return "no memory to compress " + plain.string();
  out.release();
  std::unique_ptr<std::remove_pointer_t<gzFile>, CloseGzip> writer(opened);
  std::array<char, 64 << 10> piece;
  bool good = true;
  ssize_t got = 0;
  while (good && (got = ::read(in.get(), piece.data(), piece.size())) > 0) {
    good = ::gzwrite(writer.get(), piece.data(), static_cast<unsigned>(got)) == got;
  }
  good = ::gzclose(writer.release()) == Z_OK && good && got == 0;
  if (good) {
    // So that its age stays that of its lines.
    const timespec times[] = {status.st_atim, status.st_mtim};
    ::utimensat(AT_FDCWD, scratch.c_str(), times, 0);
    good = ::rename(scratch.c_str(), packed.c_str()) == 0;
  }
  ::unlink(good ? plain.c_str() : scratch.c_str());
  return good ? "" : fmt::format("cannot compress {}: is the disk full?", plain.string());
}

}  // namespace

std::string TidyOldLogs(const std::string& path, const OldLogLimits& limits) {
  std::error_code error;
  std::vector<fs::path> files = FullFiles(path, error);
  if (error) return fmt::format("cannot list the folder of {}: {}", path, error.message());
  const auto oldest = fs::file_time_type::clock::now() - std::chrono::days(limits.retention_days);
  const size_t over = limits.files_max == 0 ? 0 : files.size() - std::min<size_t>(files.size(), limits.files_max);
  for (size_t i = 0; i < files.size(); ++i) {
    const bool aged = limits.retention_days > 0 && fs::last_write_time(files[i], error) < oldest && !error;
    if (i < over || aged) {
      if (!fs::remove(files[i], error) && error) {
        return fmt::format("cannot remove {}: {}", files[i].string(), error.message());
      }
    } else if (limits.compress && files[i].string().ends_with(kPlain)) {
      if (std::string problem = Compress(files[i]); !problem.empty()) return problem;
    }
  }
  return "";
}

}  // namespace datasystem::worker
