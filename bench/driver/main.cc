// bench_driver SYSTEM [ADDRESS]: runs commands (commands.h) against one cache.
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "driver/commands.h"

namespace datasystem::bench {

void Fail(const std::string& reason) {
  std::fprintf(stderr, "bench_driver: %s\n", reason.c_str());
  std::exit(1);
}

size_t Cache::View(const std::string&) { Fail("this cache has no values in place"); }
size_t Cache::ViewAll(const std::vector<std::string>&) {
  Fail("this cache has no values in place");
}

void Cache::Exist(const std::vector<std::string>&) {
  Fail("this cache has no call for many keys");
}
void Cache::Fill(const std::vector<std::string>& keys, std::string_view value) {
  for (const std::string& key : keys) Set(key, value);
}

namespace {

std::unique_ptr<Cache> Connect(const std::string& system, const std::string& address) {
  if (system == "datasystem") return ConnectDatasystem(address);
  if (system == "memcached") return ConnectMemcached(address);
  if (system == "redis") return ConnectRedis(address);
  if (system == "memory") return MemoryReference();
  Fail("usage: bench_driver datasystem|memcached|redis|memory [ADDRESS]");
}

}  // namespace
}  // namespace datasystem::bench

int main(int argc, char** argv) {
  using namespace datasystem::bench;
  const std::unique_ptr<Cache> cache = Connect(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  Commands commands(*cache);
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << commands.Run(line) << std::endl;
  }
  return 0;
}
