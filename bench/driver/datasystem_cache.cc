#include <datasystem/datasystem.h>

#include <algorithm>

#include "driver/cache.h"

namespace datasystem::bench {
namespace {

void Check(const Status& status) {
  if (status.IsError()) Fail(status.ToString());
}

class DatasystemCache final : public Cache {
 public:
  explicit DatasystemCache(const ConnectOptions& options) : client_(options) {
    Check(client_.Init());
  }

  void Set(const std::string& key, std::string_view value) override {
    Check(client_.Set(key, value));
  }

  size_t Get(const std::string& key) override {
    Check(client_.Get(key, value_));
    return value_.size();
  }

  size_t View(const std::string& key) override {
    Optional<ReadOnlyBuffer> view;
    Check(client_.Get(key, view));
    return Touch(*view);
  }

  size_t ViewAll(const std::vector<std::string>& keys) override {
    std::vector<Optional<ReadOnlyBuffer>> views;
    Check(client_.Get(keys, views));
    size_t size = 0;
    for (const auto& view : views) {
      if (!view) Fail("a key of the batch was not obtained");
      size += Touch(*view);
    }
    return size;
  }

  void Exist(const std::vector<std::string>& keys) override {
    std::vector<bool> exists;
    Check(client_.Exist(keys, exists));
    if (std::count(exists.begin(), exists.end(), true) != static_cast<ptrdiff_t>(keys.size())) {
      Fail("a key of the batch does not exist");
    }
  }

  // May be evicted, so that a mixed load can go on for ever.
  void Fill(const std::vector<std::string>& keys, std::string_view value) override {
    std::vector<std::string> failed;
    const std::vector<StringView> values(keys.size(), value);
    Check(client_.MSet(keys, values, failed, {.writeMode = WriteMode::NONE_L2_CACHE_EVICT}));
    if (!failed.empty()) Fail("could not set " + failed.front());
  }

  void Delete(const std::vector<std::string>& keys) override {
    std::vector<std::string> failed;
    Check(client_.Del(keys, failed));
    if (!failed.empty()) Fail("could not delete " + failed.front());
  }

 private:
  static size_t Touch(const ReadOnlyBuffer& view) {
    const char first = *static_cast<const char*>(view.ImmutableData());
    asm volatile("" : : "r"(first));  // is read
    return static_cast<size_t>(view.GetSize());
  }

  KVClient client_;
  std::string value_;  // reused, as a program that reads many values would
};

}  // namespace

std::unique_ptr<Cache> ConnectDatasystem(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) Fail("expected ip:port, got " + address);
  ConnectOptions options;
  options.host = address.substr(0, colon);
  options.port = std::stoi(address.substr(colon + 1));
  return std::make_unique<DatasystemCache>(options);
}

}  // namespace datasystem::bench
