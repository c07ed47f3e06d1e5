#include "transport/ucx_log.h"

#include <ucs/debug/log_def.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/log.h"

namespace datasystem::transport {
namespace {

constexpr size_t kComplaintsMax = 8;

thread_local std::vector<std::string>* complaints = nullptr;

bool UcxLogWanted() {
  static const bool wanted = std::getenv("UCX_LOG_LEVEL") != nullptr || std::getenv("UCX_LOG_FILE") != nullptr;
  return wanted;
}

ucs_log_func_rc_t OnUcxLine(const char* file, unsigned line, const char*, ucs_log_level_t level,
                            const ucs_log_component_config_t*, const char* format, va_list arguments) {
  if (level <= UCS_LOG_LEVEL_WARN) {
    char text[512];
    va_list copy;
    va_copy(copy, arguments);
    std::vsnprintf(text, sizeof(text), format, copy);
    va_end(copy);
    if (complaints != nullptr && complaints->size() < kComplaintsMax) complaints->emplace_back(text);
    // What UCX calls fatal ends the process: it must be seen.
    if (level == UCS_LOG_LEVEL_FATAL) LOG_ERROR("ucx: {}", text);
    else LOG_DEBUG("ucx: {} ({}:{})", text, file, line);
  }
  return UcxLogWanted() ? UCS_LOG_FUNC_RC_CONTINUE : UCS_LOG_FUNC_RC_STOP;
}

}  // namespace

void RedirectUcxLog() {
  static std::once_flag once;
  std::call_once(once, [] { ucs_log_push_handler(OnUcxLine); });
}

UcxComplaints::UcxComplaints() : outer_(complaints) { complaints = &lines_; }
UcxComplaints::~UcxComplaints() { complaints = outer_; }

std::string UcxComplaints::text() const {
  std::string text;
  for (const std::string& line : lines_) text += (text.empty() ? "" : "; ") + line;
  return text;
}

}  // namespace datasystem::transport
