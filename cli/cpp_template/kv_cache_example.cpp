// Sets a value, reads it without copying it, deletes it: kv_cache_example IP PORT
#include <cstdlib>
#include <iostream>
#include <string>

#include "datasystem/datasystem.h"

namespace {

bool Succeeded(const char* step, const datasystem::Status& status) {
  if (status.IsError()) std::cerr << step << " failed: " << status.ToString() << "\n";
  return status.IsOk();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: kv_cache_example IP PORT\n";
    return 2;
  }
  datasystem::ConnectOptions options;
  options.host = argv[1];
  options.port = std::atoi(argv[2]);
  options.connectTimeoutMs = 5000;
  datasystem::KVClient client(options);
  if (!Succeeded("connecting", client.Init())) return 1;

  const std::string key = client.GenerateKey("example");
  const std::string value = "a value of " + key;
  if (!Succeeded("set", client.Set(key, value))) return 1;

  // A view of the cache's own memory; the value stays in place until the buffer is gone.
  datasystem::Optional<datasystem::ReadOnlyBuffer> buffer;
  if (!Succeeded("get", client.Get(key, buffer))) return 1;
  const std::string read(static_cast<const char*>(buffer->ImmutableData()), buffer->GetSize());
  if (read != value) {
    std::cerr << "got another value: " << read << "\n";
    return 1;
  }
  if (!Succeeded("delete", client.Del(key))) return 1;
  std::cout << "set, got and deleted " << value.size() << " bytes through the worker @ " << argv[1] << ":"
            << argv[2] << "\n";
  return 0;
}
