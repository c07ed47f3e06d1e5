#include "driver/commands.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "driver/timing.h"

namespace datasystem::bench {
namespace {

constexpr size_t kDeleteBatch = 1000;

std::vector<std::string> ReadKeys(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> keys;
  for (std::string key; std::getline(file, key);) keys.push_back(key);
  if (keys.empty()) Fail("no keys in " + path);
  return keys;
}

void CheckSize(size_t got, size_t expected) {
  if (got != expected) {
    Fail("got " + std::to_string(got) + " bytes instead of " + std::to_string(expected));
  }
}

}  // namespace

// Filled once, so that no command measures the making of values.
std::string_view Commands::Value(size_t size) {
  while (value_.size() < size) value_.push_back(static_cast<char>(value_.size() * 131 >> 3));
  return std::string_view(value_).substr(0, size);
}

std::string Commands::Run(const std::string& line) {
  std::istringstream words(line);
  std::string command;
  words >> command;
  if (command == "set" || command == "get" || command == "view") {
    size_t size = 0;
    size_t count = 0;
    if (!(words >> size >> count) || count == 0) Fail("bad command: " + line);
    const std::string key = "bench-" + std::to_string(size);
    if (command == "set") {
      const std::string_view value = Value(size);
      return TimeRepeated(count, [&](size_t) { cache_.Set(key, value); }).ToJson();
    }
    if (command == "get") {
      return TimeRepeated(count, [&](size_t) { CheckSize(cache_.Get(key), size); }).ToJson();
    }
    return TimeRepeated(count, [&](size_t) { CheckSize(cache_.View(key), size); }).ToJson();
  }
  std::string path;
  if (!(words >> path)) Fail("bad command: " + line);
  const std::vector<std::string> keys = ReadKeys(path);
  if (command == "delete") {
    for (size_t i = 0; i < keys.size(); i += kDeleteBatch) {
      const size_t end = std::min(keys.size(), i + kDeleteBatch);
      cache_.Delete({keys.begin() + i, keys.begin() + end});
    }
    return "{}";
  }
  size_t size = 0;
  if (!(words >> size)) Fail("bad command: " + line);
  if (command == "fill") {
    const std::string_view value = Value(size);
    return TimeEach(keys.size(), [&](size_t i) { cache_.Set(keys[i], value); }).ToJson();
  }
  if (command == "get_each") {
    return TimeEach(keys.size(), [&](size_t i) { CheckSize(cache_.Get(keys[i]), size); }).ToJson();
  }
  if (command == "view_each") {
    return TimeEach(keys.size(), [&](size_t i) { CheckSize(cache_.View(keys[i]), size); }).ToJson();
  }
  if (command == "view_all") {
    return TimeEach(1, [&](size_t) { CheckSize(cache_.ViewAll(keys), size * keys.size()); })
        .ToJson();
  }
  Fail("unknown command: " + line);
}

}  // namespace datasystem::bench
