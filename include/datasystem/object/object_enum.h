// How objects are kept.
#pragma once

namespace datasystem {

enum class WriteMode : int {
  NONE_L2_CACHE = 0,           // memory only; never dropped under pressure
  WRITE_THROUGH_L2_CACHE = 1,  // in the second-level store before the call returns
  WRITE_BACK_L2_CACHE = 2,     // in the second-level store some time after
  NONE_L2_CACHE_EVICT = 3,     // memory only; may be dropped under pressure
  WRITE_BACK_L2_CACHE_EVICT = 4,
};

enum class CacheType : int {
  MEMORY = 0,
  DISK = 1,
};

enum class ExistenceOpt : int {
  NONE = 0,  // create or overwrite
  NX = 1,    // only if the key does not exist
};

}  // namespace datasystem
