// What is attached to the calls of a thread.
#pragma once

#include <string>

#include "datasystem/utils/status.h"

namespace datasystem {

class DATASYSTEM_API Context {
 public:
  // The trace id of all later calls of this thread, shown in every error text; without one each failing
  // call shows an id of its own. At most 255 letters, digits and -_!@#%^*()+=:;~$&./ ; empty: back to
  // an id for each call. K_INVALID names the character that is wrong.
  static Status SetTraceId(const std::string& traceId);
};

}  // namespace datasystem
