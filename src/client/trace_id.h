// The identifier that ties an error text to the records of the call.
#pragma once

#include "datasystem/utils/status.h"

namespace datasystem::client {

// Appends ", traceId: <id>" to an error: the id of this thread (Context::SetTraceId), else a new one.
Status WithTraceId(Status status);

}  // namespace datasystem::client
