// Passing of file descriptors over a Unix socket (SCM_RIGHTS).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace datasystem::shm {

constexpr size_t kDescriptorsMax = 64;

// Sends `bytes` (at least 1) with the descriptors attached to the first of them; blocks until all is sent.
Status SendWithDescriptors(int socket, std::span<const std::byte> bytes, std::span<const int> fds);

// Fills `bytes` completely; descriptors that came along are appended to `fds` (close-on-exec).
// kIoError on end of stream, on truncated ancillary data, or when SO_RCVTIMEO runs out.
Status ReceiveWithDescriptors(int socket, std::span<std::byte> bytes, std::vector<UniqueFd>& fds);

}  // namespace datasystem::shm
