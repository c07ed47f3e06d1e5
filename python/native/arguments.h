// What Python passes in, read in place: keys, and values of every type that set() takes.
// Everything here needs the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace datasystem::python {

namespace py = pybind11;

// TypeError "The input of <name> has invalid type, valid type: [<valid>]": the words of yr.datasystem.util
// for what is inside a list, which only the native side looks at.
[[noreturn]] void ThrowInvalidType(const std::string& name, const char* valid);

bool BoolOf(py::handle value, const std::string& name);

// TypeError names the first element that is not exactly a str.
std::vector<std::string> KeysOf(const py::list& keys);

// TypeError unless it is exactly a str. The text is the object's own.
std::string_view TextOf(py::handle value, const std::string& name);

// TypeError unless it is exactly an int, RuntimeError unless low <= value <= high; the words are those of
// yr.datasystem.util.
int64_t IntegerOf(py::handle value, const std::string& name, int64_t low, int64_t high);
// The same for 0 to 2^64 - 1.
uint64_t UnsignedOf(py::handle value, const std::string& name);

// The bytes of a str, or of anything that has the buffer protocol and no gaps, without a copy (a str with
// other than ASCII characters is encoded first). The object cannot be resized or freed while the view lives.
class ValueView {
 public:
  // `name` for the TypeError: no such type, or a buffer with gaps.
  ValueView(py::handle value, const std::string& name);
  ValueView(ValueView&& other) noexcept;
  ValueView& operator=(ValueView&&) = delete;
  ~ValueView();

  std::string_view bytes() const { return bytes_; }

 private:
  py::object owner_;      // of `bytes_`, unless `buffer_` is
  Py_buffer buffer_{};    // obj is null when not in use
  std::string_view bytes_;
};

}  // namespace datasystem::python
