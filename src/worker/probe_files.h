// The files by which others see that the worker is registered (health) and answers (ready). See
// docs/probes.md. Threads: the event loop's.
#pragma once

#include <string>

#include "base/result.h"

namespace datasystem::worker {

// A file of mode 0600, replaced as a whole, so that a reader never sees half of it.
Status WriteProbeFile(const std::string& path, const std::string& text);
// Removes the file of an earlier life and makes the folder (mode 0700). kIoError names the path; an
// empty path is no file.
Status PrepareProbeFile(const std::string& path);

class ProbeFiles {
 public:
  struct Paths {
    std::string health;  // exists while the worker is registered; each path may be empty: no such file
    std::string ready;   // exists while requests are answered
  };

  explicit ProbeFiles(Paths paths) : paths_(std::move(paths)) {}
  // Removes what it made.
  ~ProbeFiles() { Clear(); }

  Status Prepare();
  Status MarkHealthy();
  Status MarkReady();
  void ClearReady();
  // The worker is leaving.
  void Clear();

 private:
  const Paths paths_;
};

}  // namespace datasystem::worker
