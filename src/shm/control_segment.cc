#include "shm/control_segment.h"

#include <new>

namespace datasystem::shm {

Result<ControlSegment> ControlSegment::Create() {
  ASSIGN_OR_RETURN(MemoryFile file,
                   MemoryFile::Create("datasystem-control", sizeof(ControlLayout), MemoryFile::Others::kWrite));
  // The file is zero where the layout is not, and atomics of zero are free slots.
  new (file.bytes().data()) ControlLayout;
  return ControlSegment(std::move(file));
}

}  // namespace datasystem::shm
