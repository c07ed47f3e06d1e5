#include <hiredis/hiredis.h>
#include <sys/socket.h>

#include "driver/cache.h"

namespace datasystem::bench {
namespace {

constexpr int kSocketBuffer = 4 << 20;

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, FreeReply>;

class RedisCache final : public Cache {
 public:
  explicit RedisCache(const std::string& path) : context_(redisConnectUnix(path.c_str())) {
    if (context_ == nullptr || context_->err != 0) Fail("redis: no connection to " + path);
    ::setsockopt(context_->fd, SOL_SOCKET, SO_SNDBUF, &kSocketBuffer, sizeof(kSocketBuffer));
    ::setsockopt(context_->fd, SOL_SOCKET, SO_RCVBUF, &kSocketBuffer, sizeof(kSocketBuffer));
  }
  ~RedisCache() override { redisFree(context_); }

  void Set(const std::string& key, std::string_view value) override {
    Check(redisCommand(context_, "SET %b %b", key.data(), key.size(), value.data(), value.size()));
  }

  size_t Get(const std::string& key) override {
    const Reply reply = Check(redisCommand(context_, "GET %b", key.data(), key.size()));
    return reply->len;
  }

  void Fill(const std::vector<std::string>& keys, std::string_view value) override {
    for (const std::string& key : keys) {
      redisAppendCommand(context_, "SET %b %b", key.data(), key.size(), value.data(), value.size());
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      void* reply = nullptr;
      redisGetReply(context_, &reply);
      Check(reply);
    }
  }

  void Delete(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys)
      Check(redisCommand(context_, "DEL %b", key.data(), key.size()));
  }

 private:
  Reply Check(void* answer) {
    Reply reply(static_cast<redisReply*>(answer));
    if (reply == nullptr) Fail(std::string("redis: ") + context_->errstr);
    if (reply->type == REDIS_REPLY_ERROR) Fail(std::string("redis: ") + reply->str);
    return reply;
  }

  redisContext* context_;
};

}  // namespace

std::unique_ptr<Cache> ConnectRedis(const std::string& address) {
  return std::make_unique<RedisCache>(address);
}

}  // namespace datasystem::bench
