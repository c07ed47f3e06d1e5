// CHECK: our own bug, never the caller's mistake or wire input. Aborts with the place and the condition.
#pragma once

namespace datasystem {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace datasystem

#define CHECK(condition) \
  (__builtin_expect(!(condition), 0) ? ::datasystem::CheckFailed(__FILE__, __LINE__, #condition) : (void)0)

#ifdef NDEBUG
#define DCHECK(condition) ((void)sizeof(!(condition)))
#else
#define DCHECK(condition) CHECK(condition)
#endif
