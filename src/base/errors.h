// Makers of error statuses with formatted messages: `return errors::NotFound("no object {}", key);`
// A code says what the caller can do; the message says which part failed, with key, peer and size.
#pragma once

#include <fmt/core.h>

#include "datasystem/utils/status.h"

namespace datasystem::errors {

template <typename... Args>
Status Make(StatusCode code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::vformat(format, fmt::make_format_args(args...)));
}

#define DS_ERROR_MAKER(Name, code)                                             \
  template <typename... Args>                                                  \
  Status Name(fmt::format_string<Args...> format, Args&&... args) {            \
    return Status(code, fmt::vformat(format, fmt::make_format_args(args...))); \
  }

DS_ERROR_MAKER(Invalid, K_INVALID)                        // fix the call
DS_ERROR_MAKER(NotFound, K_NOT_FOUND)                     // no such key
DS_ERROR_MAKER(AlreadyExists, K_OC_KEY_ALREADY_EXIST)     // NX and the key exists
DS_ERROR_MAKER(OutOfMemory, K_OUT_OF_MEMORY)              // free cache memory
DS_ERROR_MAKER(OutOfRange, K_OUT_OF_RANGE)                // offset beyond the end
DS_ERROR_MAKER(NotReady, K_NOT_READY)                     // come back later
DS_ERROR_MAKER(TryAgain, K_TRY_AGAIN)                     // refresh the view of the cluster, retry
DS_ERROR_MAKER(IoError, K_IO_ERROR)                       // the operating system refused
DS_ERROR_MAKER(Runtime, K_RUNTIME_ERROR)                  // an operator must act
DS_ERROR_MAKER(Unavailable, K_RPC_UNAVAILABLE)            // the other side cannot be reached
DS_ERROR_MAKER(PeerDead, K_RPC_PEER_DEAD)                 // the peer died during the call
DS_ERROR_MAKER(DeadlineExceeded, K_RPC_DEADLINE_EXCEEDED) // no answer in time
DS_ERROR_MAKER(ShuttingDown, K_SHUTTING_DOWN)             // this worker is stopping
DS_ERROR_MAKER(NotSupported, K_NOT_SUPPORTED)             // not in this build or version
DS_ERROR_MAKER(StoreError, K_KVSTORE_ERROR)               // the cluster store failed
DS_ERROR_MAKER(Disconnected, K_CLIENT_WORKER_DISCONNECT)  // client lost its worker
DS_ERROR_MAKER(VersionMismatch, K_CLIENT_WORKER_VERSION_MISMATCH)

#undef DS_ERROR_MAKER

// IoError whose message ends in the text of `error_number` (an errno value).
Status FromErrno(int error_number, std::string_view what);

}  // namespace datasystem::errors
