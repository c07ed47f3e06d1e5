// The key-value interface of the cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datasystem/kv/read_only_buffer.h"
#include "datasystem/object/buffer.h"
#include "datasystem/object/object_enum.h"
#include "datasystem/utils/connection.h"
#include "datasystem/utils/optional.h"
#include "datasystem/utils/status.h"
#include "datasystem/utils/string_view.h"

namespace datasystem {

namespace client {
class LocalReads;
class PendingGet;
}  // namespace client

struct SetParam {
  WriteMode writeMode = WriteMode::NONE_L2_CACHE;
  uint32_t ttlSecond = 0;  // counted from this set; 0: until deleted
  ExistenceOpt existence = ExistenceOpt::NONE;
  CacheType cacheType = CacheType::MEMORY;
};

using MSetParam = SetParam;

// The bytes [offset, offset + size) of a value, clipped to its end; size 0: to the end.
struct ReadParam {
  std::string key;
  uint64_t offset = 0;
  uint64_t size = 0;
};

// A connection to one worker, normally the one on this node: values then travel through shared
// memory, and reading what is on this node costs no message and no system call.
//
// Keys:    1 to 1024 bytes of letters, digits and -_!@#%^*()+=:;~$&.
// Values:  at least 1 byte.
// Threads: any number may use one client at once.
//
// Batches take any number of keys but none at all. An illegal key fails alone. Unless a call says
// otherwise it returns K_OK when at least one key succeeded, else the error of the first; what was
// not obtained is absent (an empty string in the string forms).
//
// Errors; the message ends in ", traceId: <id>".
//
// - K_INVALID: fix the call.
// - K_NOT_FOUND, K_OUT_OF_MEMORY.
// - K_NOT_READY: Init() has not succeeded.
// - K_RPC_UNAVAILABLE: no worker there.
// - K_RPC_DEADLINE_EXCEEDED: no answer in time; what the call does may still happen.
// - K_CLIENT_WORKER_DISCONNECT: the worker went away during the call. The next call connects again,
//   and goes on trying for as long as its time-out allows, 10 s at most.
// - K_RUNTIME_ERROR: used in a child process after fork; create a client there.
class DATASYSTEM_API KVClient {
 public:
  // Does not connect.
  explicit KVClient(const ConnectOptions& options = {});
  // As ShutDown.
  ~KVClient();
  KVClient(const KVClient&) = delete;
  KVClient& operator=(const KVClient&) = delete;

  // Connects. Calling it again while connected does nothing.
  Status Init();
  // Disconnects; not while other calls run. Buffers that are still held stay valid: the worker
  // keeps their memory until the last of them is gone. Init() connects again.
  Status ShutDown();

  // Creates or overwrites. Every get in the cluster that starts after the return sees the new
  // value. K_OC_KEY_ALREADY_EXIST: existence is NX and the key exists.
  Status Set(const std::string& key, const StringView& val, const SetParam& param = {});
  // Under a generated key, which is returned; "" on failure.
  std::string Set(const StringView& val, const SetParam& param = {});

  // Memory for a value that the caller fills in place and publishes with Set(buffer).
  // NX is refused (K_INVALID).
  Status Create(const std::string& key, uint64_t size, const SetParam& param,
                std::shared_ptr<Buffer>& buffer);
  // Publishes a buffer from Create; after success it is spent. After an error it may be tried
  // again; K_INVALID then means that the worker has let go of its memory: create a new one.
  Status Set(const std::shared_ptr<Buffer>& buffer);

  // A buffer for each key; all of them or none. NX, and a key that occurs twice, are refused
  // (K_INVALID).
  Status MCreate(const std::vector<std::string>& keys, const std::vector<uint64_t>& sizes,
                 const SetParam& param, std::vector<std::shared_ptr<Buffer>>& buffers);
  // Publishes each of the buffers. An error is that of the first that failed; those that did not
  // fail are spent, the others may be tried again.
  Status MSet(const std::vector<std::shared_ptr<Buffer>>& buffers);

  // `vals` has a value for each key. `outFailedKeys` receives the keys that were not stored. A key
  // that occurs twice: the first is stored, and the key is reported as failed. With NX, keys that
  // exist are left alone and count as success.
  Status MSet(const std::vector<std::string>& keys, const std::vector<StringView>& vals,
              std::vector<std::string>& outFailedKeys, const MSetParam& param = {});
  // All keys are set or none is: 1 to 8 different keys, and existence must be NX.
  // K_OC_KEY_ALREADY_EXIST: one of them exists.
  Status MSetTx(const std::vector<std::string>& keys, const std::vector<StringView>& vals,
                const MSetParam& param = {});

  // subTimeoutMs: how long to wait for keys that do not exist yet; 0: not at all.
  // The string forms copy (the single one straight into `val`, which is empty after an error); the
  // buffer forms are views without a copy.
  Status Get(const std::string& key, std::string& val, int32_t subTimeoutMs = 0);
  Status Get(const std::string& key, Optional<ReadOnlyBuffer>& buffer, int32_t subTimeoutMs = 0);
  Status Get(const std::string& key, Optional<Buffer>& buffer, int32_t subTimeoutMs = 0);
  Status Get(const std::vector<std::string>& keys, std::vector<std::string>& vals,
             int32_t subTimeoutMs = 0);
  Status Get(const std::vector<std::string>& keys, std::vector<Optional<ReadOnlyBuffer>>& buffers,
             int32_t subTimeoutMs = 0);
  Status Get(const std::vector<std::string>& keys, std::vector<Optional<Buffer>>& buffers,
             int32_t subTimeoutMs = 0);

  // Parts of values, as views without a copy; does not wait for keys that do not exist yet.
  // K_OUT_OF_RANGE: the offset is at or after the end. K_INVALID: a key occurs twice, or offset +
  // size is 2^64 or more.
  Status Read(const std::vector<ReadParam>& readParams,
              std::vector<Optional<ReadOnlyBuffer>>& buffers);

  // Removes all copies everywhere. A missing key counts as success.
  Status Del(const std::string& key);
  Status Del(const std::vector<std::string>& keys, std::vector<std::string>& failedKeys);

  // Keys that do not exist are a normal answer, even if all of them. K_INVALID: names an illegal
  // key.
  Status Exist(const std::vector<std::string>& keys, std::vector<bool>& exists);

  // A new time to live from now on; 0: until deleted. A missing key is among `failedKeys`.
  Status Expire(const std::vector<std::string>& keys, uint32_t ttlSeconds,
                std::vector<std::string>& failedKeys);

  // The sizes of the values in bytes; 0 for a key that was not found.
  Status QuerySize(const std::vector<std::string>& keys, std::vector<uint64_t>& sizes);

  // A key that nobody else has: `prefix` (a UUID when empty), ';' and a UUID. "" when that is too
  // long or has illegal characters.
  std::string GenerateKey(const std::string& prefix = "");
  Status GenerateKey(const std::string& prefix, std::string& key);

  // K_OK: the worker can be reached and serves.
  Status HealthCheck();

  // For credentials that expire. K_NOT_SUPPORTED: this version has no authentication; Init() refuses
  // credentials as well.
  Status UpdateToken(const SensitiveValue& token);
  Status UpdateAkSk(const std::string& accessKey, const SensitiveValue& secretKey);

 private:
  friend class client::LocalReads;
  friend class client::PendingGet;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace datasystem
