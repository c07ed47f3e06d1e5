#include <libmemcached/memcached.h>

#include <cstdlib>

#include "driver/cache.h"

namespace datasystem::bench {
namespace {

constexpr uint64_t kSocketBuffer = 4 << 20;

class MemcachedCache final : public Cache {
 public:
  explicit MemcachedCache(const std::string& path) : client_(memcached_create(nullptr)) {
    Check(memcached_server_add_unix_socket(client_, path.c_str()));
    memcached_behavior_set(client_, MEMCACHED_BEHAVIOR_SOCKET_SEND_SIZE, kSocketBuffer);
    memcached_behavior_set(client_, MEMCACHED_BEHAVIOR_SOCKET_RECV_SIZE, kSocketBuffer);
  }
  ~MemcachedCache() override {
    if (filler_ != nullptr) memcached_free(filler_);
    memcached_free(client_);
  }

  void Set(const std::string& key, std::string_view value) override {
    Check(memcached_set(client_, key.data(), key.size(), value.data(), value.size(), 0, 0));
  }

  size_t Get(const std::string& key) override {
    size_t size = 0;
    uint32_t flags = 0;
    memcached_return_t result = MEMCACHED_SUCCESS;
    char* value = memcached_get(client_, key.data(), key.size(), &size, &flags, &result);
    Check(result);
    std::free(value);
    return size;
  }

  // By a connection of its own: changing how one sends drops what it has not sent.
  void Fill(const std::vector<std::string>& keys, std::string_view value) override {
    if (filler_ == nullptr) {
      filler_ = memcached_clone(nullptr, client_);
      memcached_behavior_set(filler_, MEMCACHED_BEHAVIOR_NOREPLY, 1);
      memcached_behavior_set(filler_, MEMCACHED_BEHAVIOR_BUFFER_REQUESTS, 1);
    }
    for (const std::string& key : keys) {
      memcached_set(filler_, key.data(), key.size(), value.data(), value.size(), 0, 0);
    }
    memcached_flush_buffers(filler_);
    size_t size = 0;
    uint32_t flags = 0;
    memcached_return_t result = MEMCACHED_SUCCESS;
    std::free(memcached_get(filler_, keys.back().data(), keys.back().size(), &size, &flags, &result));
    Check(result);  // the last is there when all are
  }

  void Delete(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) Check(memcached_delete(client_, key.data(), key.size(), 0));
  }

 private:
  void Check(memcached_return_t result) {
    if (result != MEMCACHED_SUCCESS) {
      Fail(std::string("memcached: ") + memcached_last_error_message(client_));
    }
  }

  memcached_st* client_;
  memcached_st* filler_ = nullptr;
};

}  // namespace

std::unique_ptr<Cache> ConnectMemcached(const std::string& address) {
  return std::make_unique<MemcachedCache>(address);
}

}  // namespace datasystem::bench
