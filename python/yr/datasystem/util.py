"""Status, Context (the trace id of a thread's calls) and Validator (checks of argument types)."""

from __future__ import annotations

import threading

from .lib import libds_client_py as _native
from .lib.libds_client_py import Status

__all__ = ["Context", "Status", "Validator"]

INT32_MAX = 2**31 - 1
UINT32_MAX = 2**32 - 1

_of_thread = threading.local()


def current_trace_id() -> str:
    """What this thread gave to Context.set_trace_id() last, or ""."""
    trace_id: str = getattr(_of_thread, "trace_id", "")
    return trace_id


class Context:
    """What is attached to the calls of a thread."""

    @staticmethod
    def set_trace_id(trace_id: str) -> None:
        """Sets the trace id of all later calls of this thread; it is shown in every error text.

        At most 255 letters, digits and -_!@#%^*()+=:;~$&./ ; "" goes back to an id for each call.
        RuntimeError if it is anything else.
        """
        Validator.check_type("trace_id", trace_id, str)
        _native.set_trace_id(trace_id)
        _of_thread.trace_id = trace_id


class Validator:
    """Checks of arguments. Types are compared exactly: a bool is not an int."""

    @staticmethod
    def check_type(name: str, value: object, *valid_types: type) -> None:
        """TypeError unless `value` is exactly of one of `valid_types`."""
        if type(value) not in valid_types:
            valid = ", ".join(t.__name__ for t in valid_types)
            raise TypeError(f"The input of {name} has invalid type, valid type: [{valid}]")

    @staticmethod
    def check_range(name: str, value: int, low: int, high: int) -> None:
        """TypeError unless `value` is an int, RuntimeError unless low <= value <= high."""
        Validator.check_type(name, value, int)
        if not low <= value <= high:
            raise RuntimeError(
                f"Invalid {name} size {value} is set, which should be between [{low},{high}]")
