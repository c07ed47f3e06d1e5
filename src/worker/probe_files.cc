#include "worker/probe_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "base/unique_fd.h"

namespace datasystem::worker {
namespace {

constexpr auto kLivenessInterval = std::chrono::seconds(5);

// Written beside and renamed, so that a reader never sees half of it.
Status WriteWhole(const std::string& path, const std::string& text) {
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

}  // namespace

ProbeFiles::ProbeFiles(asio::io_context& context, Paths paths)
    : paths_(std::move(paths)), liveness_timer_(context) {}

ProbeFiles::~ProbeFiles() { Clear(); }

Status ProbeFiles::Prepare() {
  for (const std::string& path : {paths_.health, paths_.ready, paths_.liveness}) {
    if (path.empty()) continue;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code error;
    if (!folder.empty() && std::filesystem::create_directories(folder, error)) {
      ::chmod(folder.c_str(), 0700);
    }
    if (error) return errors::IoError("cannot make the folder of {}: {}", path, error.message());
    ::unlink(path.c_str());
  }
  return Status::OK();
}

Status ProbeFiles::MarkHealthy() {
  return paths_.health.empty() ? Status::OK() : WriteWhole(paths_.health, "health check success\n");
}

Status ProbeFiles::MarkReady() {
  return paths_.ready.empty() ? Status::OK() : WriteWhole(paths_.ready, "health check success\n");
}

void ProbeFiles::ClearReady() {
  if (!paths_.ready.empty()) ::unlink(paths_.ready.c_str());
}

void ProbeFiles::StartLiveness() {
  if (!paths_.liveness.empty()) BeatLiveness();
}

void ProbeFiles::BeatLiveness() {
  const Status written = WriteWhole(paths_.liveness, "liveness check success\n");
  if (written.IsError()) LOG_WARNING("liveness file not written reason={}", written.GetMsg());
  liveness_timer_.expires_after(kLivenessInterval);
  liveness_timer_.async_wait([this](asio::error_code error) {
    if (!error) BeatLiveness();
  });
}

void ProbeFiles::Clear() {
  liveness_timer_.cancel();
  for (const std::string& path : {paths_.health, paths_.ready, paths_.liveness}) {
    if (!path.empty()) ::unlink(path.c_str());
  }
}

}  // namespace datasystem::worker
