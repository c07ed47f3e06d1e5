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
#pragma once

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

  Cache& cache_;
  std::string value_;
};

}  // namespace datasystem::bench
