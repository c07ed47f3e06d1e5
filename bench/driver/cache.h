// One cache as the driver measures it. Each implementation is what a careful user of that system's
// own client library would write: connection kept open, settings for large values, no work that is
// not needed.
//
// Errors end the process: a measurement with failures in it is none.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace datasystem::bench {

// Prints the reason to standard error and exits.
[[noreturn]] void Fail(const std::string& reason);

class Cache {
 public:
  virtual ~Cache() = default;
  virtual void Set(const std::string& key, std::string_view value) = 0;
  // A private copy of the value, as the library hands it out. Returns its size.
  virtual size_t Get(const std::string& key) = 0;
  // The value in place, one byte of it read; for systems that can. Returns its size.
  virtual size_t View(const std::string& key);
  // All values in place by one call. Returns the sum of the sizes.
  virtual size_t ViewAll(const std::vector<std::string>& keys);
  // All keys exist; one call for all of them. For systems that have one.
  virtual void Exist(const std::vector<std::string>& keys);
  // Sets all keys to one value, as fast as the library can.
  virtual void Fill(const std::vector<std::string>& keys, std::string_view value);
  virtual void Delete(const std::vector<std::string>& keys) = 0;
};

// `address`: "ip:port".
std::unique_ptr<Cache> ConnectDatasystem(const std::string& address);
// `address`: path of a Unix socket.
std::unique_ptr<Cache> ConnectMemcached(const std::string& address);
std::unique_ptr<Cache> ConnectRedis(const std::string& address);
// memcpy into memory of this process that is mapped and touched: what a set costs at least.
std::unique_ptr<Cache> MemoryReference();

}  // namespace datasystem::bench
