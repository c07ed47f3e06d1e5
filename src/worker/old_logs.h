// Log files that were set aside because they were full (base/log_file.h): how many stay, for how long.
#pragma once

#include <cstdint>
#include <string>

namespace datasystem::worker {

struct OldLogLimits {
  uint32_t files_max = 5;       // of one path; 0: all
  uint32_t retention_days = 0;  // older ones go; 0: none
  bool compress = true;         // with gzip
};

// Brings the files set aside from <path>.log within the limits. Takes seconds for large ones; not for
// threads that serve. An empty string, or what went wrong.
std::string TidyOldLogs(const std::string& path, const OldLogLimits& limits);

}  // namespace datasystem::worker
