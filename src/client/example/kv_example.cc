// Sets a value and gets it back: kv_example HOST PORT
#include <cstdlib>
#include <iostream>

#include "datasystem/datasystem.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: kv_example HOST PORT\n";
    return 2;
  }
  datasystem::ConnectOptions options;
  options.host = argv[1];
  options.port = std::atoi(argv[2]);
  options.connectTimeoutMs = 5000;
  datasystem::KVClient client(options);

  datasystem::Status status = client.Init();
  if (status.IsOk()) status = client.Set("example_key", "value");
  std::string value;
  if (status.IsOk()) status = client.Get("example_key", value);
  if (status.IsOk()) status = client.Del("example_key");
  if (status.IsError()) {
    std::cerr << status.ToString() << "\n";
    return 1;
  }
  std::cout << value << "\n";
  return 0;
}
