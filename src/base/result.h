// Result<T>: a value, or the Status that says why there is none. Internal; the public API returns Status.
#pragma once

#include <utility>
#include <variant>

#include "base/check.h"
#include "base/errors.h"

namespace datasystem {

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}  // NOLINT: implicit, so that `return value;` works
  Result(Status error) : state_(std::move(error)) {  // NOLINT: implicit, so that `return status;` works
    DCHECK(std::get<Status>(state_).IsError());
  }

  bool ok() const { return std::holds_alternative<T>(state_); }
  // OK if there is a value.
  Status status() const { return ok() ? Status::OK() : std::get<Status>(state_); }

  // Must be ok().
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace datasystem

#define DS_CONCAT_(a, b) a##b
#define DS_CONCAT(a, b) DS_CONCAT_(a, b)

// Returns from the enclosing function when `expr` (a Status) is an error.
#define RETURN_IF_ERROR(expr)                           \
  do {                                                  \
    ::datasystem::Status ds_status_ = (expr);           \
    if (ds_status_.IsError()) return ds_status_;        \
  } while (false)

// ASSIGN_OR_RETURN(auto x, SomeResult()): returns the error, or goes on with the value.
#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_(DS_CONCAT(ds_result_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_(tmp, lhs, expr)       \
  auto tmp = (expr);                            \
  if (!tmp.ok()) return tmp.status();           \
  lhs = std::move(tmp).value()

// The same in coroutines.
#define CO_RETURN_IF_ERROR(expr)                        \
  do {                                                  \
    ::datasystem::Status ds_status_ = (expr);           \
    if (ds_status_.IsError()) co_return ds_status_;     \
  } while (false)
#define CO_ASSIGN_OR_RETURN(lhs, expr) CO_ASSIGN_OR_RETURN_(DS_CONCAT(ds_result_, __LINE__), lhs, expr)
#define CO_ASSIGN_OR_RETURN_(tmp, lhs, expr)    \
  auto tmp = (expr);                            \
  if (!tmp.ok()) co_return tmp.status();        \
  lhs = std::move(tmp).value()
