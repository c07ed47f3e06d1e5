// The driver's commands, one per line on standard input; one line of JSON answers each.
// python_driver.py understands the same ones.
//
//   set SIZE COUNT        set of one key, COUNT times
//   get SIZE COUNT        copying get of the key that `set SIZE` wrote
//   view SIZE COUNT       the same in place
//   fill FILE SIZE        set of each key in FILE (one a line), once
//   get_each FILE SIZE    copying get of each key, once
//   view_each FILE SIZE   the same in place
//   view_all FILE SIZE    all keys in one call, in place; the time is that of the call
//   delete FILE           in batches; {}
// In C++ only, on keys of their own, numbered from 0:
//   many_fill SIZE KEYS         sets them
//   many_get SIZE KEYS COUNT    copying get of one of them at random, COUNT times
//   many_view SIZE KEYS COUNT   the same in place
//   many_exist KEYS COUNT       all of them in one call, COUNT times
//   mixed_fill                  sets all keys of `mixed`
//   mixed PER_SECOND SECONDS SEED   gets and sets (one in five) of 64 B to 1 MiB on 1000 keys, which
//                               all clients share, at random times; with the longest one
//   fill_mixed BYTES SEED       values of 1 KiB to 64 MiB until they are so many bytes; {}
#pragma once

#include <istream>
#include <string>

#include "driver/cache.h"

namespace datasystem::bench {

class Commands {
 public:
  explicit Commands(Cache& cache) : cache_(cache) {}
  // The answer to one line. Unknown commands end the process.
  std::string Run(const std::string& line);

 private:
  std::string_view Value(size_t size);
  std::string RunMany(const std::string& command, std::istream& words);
  std::string FillForMixed();
  std::string RunMixed(std::istream& words);
  std::string FillMixed(std::istream& words);

  Cache& cache_;
  std::string value_;
};

}  // namespace datasystem::bench
