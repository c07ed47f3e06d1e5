// The pin tables of all sessions, as the worker reads them.
//
// Threads: the event loop's, while clients write.
#pragma once

#include <cstddef>
#include <vector>

#include "shm/control_segment.h"

namespace datasystem::shm {

// The records that somebody has pinned at one moment.
class PinnedRecords {
 public:
  explicit PinnedRecords(std::vector<RecordId> ids);
  bool Contains(RecordId id) const;
  size_t size() const { return ids_.size(); }

 private:
  std::vector<RecordId> ids_;  // sorted
};

class PinTables {
 public:
  // `control` stays until Remove.
  void Add(const ControlLayout* control);
  // What it pinned is pinned no more.
  void Remove(const ControlLayout* control);

  // What is pinned now. A record that was unlinked before, and is not among them, is read by no client any more.
  PinnedRecords Collect() const;
  // What Collect() has to look at.
  size_t slots_in_use() const;

 private:
  std::vector<const ControlLayout*> tables_;
};

}  // namespace datasystem::shm
