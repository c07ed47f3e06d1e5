#include "base/errors.h"

#include <cstring>

namespace datasystem::errors {

Status FromErrno(int error_number, std::string_view what) {
  return IoError("{}: {}", what, ::strerror(error_number));
}

}  // namespace datasystem::errors
