#include "client/trace_id.h"

#include <string_view>

#include "base/errors.h"
#include "base/random.h"
#include "datasystem/context/context.h"

namespace datasystem {
namespace {

constexpr size_t kTraceIdMax = 255;
constexpr std::string_view kLegal =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_!@#%^*()+=:;~$&./";

thread_local std::string thread_trace_id;

}  // namespace

Status Context::SetTraceId(const std::string& traceId) {
  if (traceId.size() > kTraceIdMax) {
    return errors::Invalid("the trace id has {} characters, the limit is {}", traceId.size(), kTraceIdMax);
  }
  if (const size_t bad = traceId.find_first_not_of(kLegal); bad != std::string::npos) {
    return errors::Invalid("the trace id has an illegal byte 0x{:02x} at position {}",
                           static_cast<unsigned char>(traceId[bad]), bad);
  }
  thread_trace_id = traceId;
  return Status::OK();
}

namespace client {

Status WithTraceId(Status status) {
  if (status.IsError()) {
    status.AppendMsg(", traceId: " + (thread_trace_id.empty() ? RandomUuid() : thread_trace_id));
  }
  return status;
}

}  // namespace client
}  // namespace datasystem
