#include "worker/probe_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/unique_fd.h"

namespace datasystem::worker {
namespace {

constexpr const char* kSuccess = "health check success\n";

}  // namespace

Status WriteProbeFile(const std::string& path, const std::string& text) {
  const std::string scratch = path + ".new";
  {
    const UniqueFd fd(::open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd.valid()) return errors::FromErrno(errno, "cannot write " + scratch);
    if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return errors::FromErrno(errno, "cannot write " + scratch);
    }
  }
  if (::rename(scratch.c_str(), path.c_str()) != 0) return errors::FromErrno(errno, "cannot write " + path);
  return Status::OK();
}

Status PrepareProbeFile(const std::string& path) {
  if (path.empty()) return Status::OK();
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && std::filesystem::create_directories(folder, error)) {
    ::chmod(folder.c_str(), 0700);
  }
  if (error) return errors::IoError("cannot make the folder of {}: {}", path, error.message());
  ::unlink(path.c_str());
  return Status::OK();
}

Status ProbeFiles::Prepare() {
  RETURN_IF_ERROR(PrepareProbeFile(paths_.health));
  return PrepareProbeFile(paths_.ready);
}

Status ProbeFiles::MarkHealthy() {
  return paths_.health.empty() ? Status::OK() : WriteProbeFile(paths_.health, kSuccess);
}

Status ProbeFiles::MarkReady() {
  return paths_.ready.empty() ? Status::OK() : WriteProbeFile(paths_.ready, kSuccess);
}

void ProbeFiles::ClearReady() {
  if (!paths_.ready.empty()) ::unlink(paths_.ready.c_str());
}

void ProbeFiles::Clear() {
  ClearReady();
  if (!paths_.health.empty()) ::unlink(paths_.health.c_str());
}

}  // namespace datasystem::worker
