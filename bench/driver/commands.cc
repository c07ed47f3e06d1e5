#include "driver/commands.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "driver/timing.h"

namespace datasystem::bench {
namespace {

constexpr size_t kDeleteBatch = 1000;
constexpr size_t kFillBatch = 1000;
constexpr size_t kMixedKeys = 1000;

std::vector<std::string> ReadKeys(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> keys;
  for (std::string key; std::getline(file, key);) keys.push_back(key);
  if (keys.empty()) Fail("no keys in " + path);
  return keys;
}

// Cheap enough not to show in the time of a get.
std::string NumberedKey(uint64_t number) {
  std::string key = "many-0000000";
  for (size_t at = key.size() - 1; number > 0; --at, number /= 10) {
    key[at] = static_cast<char>('0' + number % 10);
  }
  return key;
}

std::vector<std::string> NumberedKeys(size_t begin, size_t end) {
  std::vector<std::string> keys;
  for (size_t i = begin; i < end; ++i) keys.push_back(NumberedKey(i));
  return keys;
}

std::string MixedKey(size_t number) { return "mixed-" + std::to_string(number); }
// Each key has a size of its own.
size_t MixedSize(size_t number) { return size_t{64} << (number * 7919 % 15); }

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

std::string Commands::RunMany(const std::string& command, std::istream& words) {
  size_t size = 0;
  size_t keys = 0;
  size_t count = 0;
  if (command != "many_exist") words >> size;
  words >> keys;
  if (command == "many_fill") {
    for (size_t i = 0; i < keys; i += kFillBatch) {
      cache_.Fill(NumberedKeys(i, std::min(keys, i + kFillBatch)), Value(size));
    }
    return "{}";
  }
  words >> count;
  if (keys == 0 || count == 0) Fail("bad command: " + command);
  if (command == "many_exist") {
    const std::vector<std::string> all = NumberedKeys(0, keys);
    return TimeRepeated(count, [&](size_t) { cache_.Exist(all); }).ToJson();
  }
  std::mt19937_64 random(keys);
  if (command == "many_get") {
    return TimeRepeated(count, [&](size_t) { CheckSize(cache_.Get(NumberedKey(random() % keys)), size); })
        .ToJson();
  }
  return TimeRepeated(count, [&](size_t) { CheckSize(cache_.View(NumberedKey(random() % keys)), size); })
      .ToJson();
}

std::string Commands::RunMixed(std::istream& words) {
  double per_second = 0;
  double seconds = 0;
  uint64_t seed = 0;
  if (!(words >> per_second >> seconds >> seed) || per_second <= 0) Fail("bad command: mixed");
  std::mt19937_64 random(seed);
  const auto load = [&] {
    const size_t number = random() % kMixedKeys;
    if (random() % 5 == 0) {
      cache_.Fill({MixedKey(number)}, Value(MixedSize(number)));
    } else {
      CheckSize(cache_.Get(MixedKey(number)), MixedSize(number));
    }
  };
  return TimePaced(1e9 / per_second, seconds, seed, load).ToJson();
}

std::string Commands::FillForMixed() {
  for (size_t number = 0; number < kMixedKeys; ++number) {
    cache_.Fill({MixedKey(number)}, Value(MixedSize(number)));
  }
  return "{}";
}

std::string Commands::FillMixed(std::istream& words) {
  double bytes = 0;
  uint64_t seed = 0;
  if (!(words >> bytes >> seed)) Fail("bad command: fill_mixed");
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(10, 26);
  for (uint64_t number = 0; bytes > 0; ++number) {
    const auto size = static_cast<size_t>(std::exp2(exponent(random)));
    cache_.Fill({"fragment-" + std::to_string(number)}, Value(size));
    bytes -= static_cast<double>(size);
  }
  return "{}";
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
  if (command.starts_with("many_")) return RunMany(command, words);
  if (command == "mixed") return RunMixed(words);
  if (command == "mixed_fill") return FillForMixed();
  if (command == "fill_mixed") return FillMixed(words);
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
