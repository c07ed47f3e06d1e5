#include "datasystem/utils/status.h"

namespace datasystem {

std::string StatusCodeName(StatusCode code) {
  switch (static_cast<uint32_t>(code)) {
    case K_OK: return "OK";
    case K_DUPLICATED: return "Key duplicated";
    case K_INVALID: return "Invalid parameter";
    case K_NOT_FOUND: return "Key not found";
    case K_KVSTORE_ERROR: return "KV store error";
    case K_RUNTIME_ERROR: return "Runtime error";
    case K_OUT_OF_MEMORY: return "Out of memory";
    case K_IO_ERROR: return "IO error";
    case K_NOT_READY: return "Not ready";
    case K_NOT_AUTHORIZED: return "Not authorized";
    case K_UNKNOWN_ERROR: return "Unknown error";
    case K_INTERRUPTED: return "Interrupt detected";
    case K_OUT_OF_RANGE: return "Out of range";
    case K_NO_SPACE: return "No space available";
    case K_NOT_LEADER_MASTER: return "Not leader master";
    case K_RECOVERY_ERROR: return "Recovery error";
    case K_RECOVERY_IN_PROGRESS: return "Recovery in progress";
    case K_FILE_NAME_TOO_LONG: return "File name is too long";
    case K_FILE_LIMIT_REACHED: return "Limit on the number of open file descriptors reached";
    case K_TRY_AGAIN: return "Try again";
    case K_DATA_INCONSISTENCY: return "Data inconsistent between master and worker";
    case K_SHUTTING_DOWN: return "Shutting down";
    case K_WORKER_ABNORMAL: return "The worker status is abnormal";
    case K_CLIENT_WORKER_DISCONNECT: return "Client and Worker disconnect";
    case K_WORKER_DEADLOCK: return "The worker may deadlock";
    case K_MASTER_TIMEOUT: return "The master may timeout/dead";
    case K_NOT_FOUND_IN_L2CACHE: return "Key not found in l2 cache";
    case K_REPLICA_NOT_READY: return "The replica not ready";
    case K_CLIENT_WORKER_VERSION_MISMATCH: return "Client and worker version mismatch";
    case K_SERVER_FD_CLOSED: return "The server fd has been closed";
    case K_RETRY_IF_LEAVING: return "Try again when worker is leaving";
    case K_SCALE_DOWN: return "The worker is exiting";
    case K_SCALING: return "The cluster is scaling";
    case K_CLIENT_DEADLOCK: return "The client may deadlock";
    case K_LRU_HARD_LIMIT: return "Lru hard limit";
    case K_LRU_SOFT_LIMIT: return "Lru soft limit";
    case K_NOT_SUPPORTED: return "Not supported";
    case K_NO_AVAILABLE_WORKER: return "No available worker";
    case K_NOT_OWNER: return "Not owner";
    case K_RPC_CANCELLED: return "RPC cancelled";
    case K_RPC_DEADLINE_EXCEEDED: return "RPC deadline exceeded";
    case K_RPC_UNAVAILABLE: return "RPC unavailable";
    case K_RPC_STREAM_END: return "RPC stream finished";
    case K_URMA_ERROR: return "Urma operation failed";
    case K_RDMA_ERROR: return "RDMA operation failed";
    case K_URMA_NEED_CONNECT: return "Urma need to reconnect";
    case K_RDMA_NEED_CONNECT: return "RDMA need to reconnect";
    case K_RPC_PEER_DEAD: return "RPC peer dead";
    case K_RPC_NETWORK_BLIP: return "RPC network blip";
    case K_OC_ALREADY_SEALED: return "Object already sealed error";
    case K_OC_OBJECT_NOT_IN_USED: return "Object not in use";
    case K_OC_REMOTE_GET_NOT_ENOUGH: return "Size on the remote node has changed";
    case K_WRITE_BACK_QUEUE_FULL: return "The write back queue is full";
    case K_OC_KEY_ALREADY_EXIST: return "Object already exist error";
    case K_WORKER_PULL_OBJECT_NOT_FOUND: return "Worker pull object not found error";
    case K_BUFFER_DEPRECATED: return "Buffer deprecated";
    case K_SC_STREAM_NOT_FOUND: return "Stream not found";
    case K_SC_PRODUCER_NOT_FOUND: return "Producer not found";
    case K_SC_CONSUMER_NOT_FOUND: return "Consumer not found";
    case K_SC_END_OF_PAGE: return "End of page";
    case K_SC_STREAM_IN_RESET_STATE: return "Stream in reset state";
    case K_SC_WORKER_WAS_LOST: return "Worker was lost";
    case K_SC_STREAM_IN_USE: return "Stream in use";
    case K_SC_STREAM_DELETE_IN_PROGRESS: return "Stream delete in progress";
    case K_SC_STREAM_RESOURCE_ERROR: return "Stream resource error";
    case K_SC_ALREADY_CLOSED: return "Stream already closed";
    case K_SC_STREAM_NOTIFICATION_PENDING: return "Stream notification pending";
    case K_ACL_ERROR: return "Acl api error";
    case K_HCCL_ERROR: return "Hccl api error";
    case K_FUTURE_TIMEOUT: return "The future is timeout";
    case K_CUDA_ERROR: return "CUDA error";
    case K_NCCL_ERROR: return "NCCL error";
  }
  return "UNKNOWN_TYPE";
}

std::string Status::ToString() const {
  return "code: [" + StatusCodeName(code_) + "], msg: [" + msg_ + "]";
}

}  // namespace datasystem
