"""dscli doctor: what would stop or slow down a worker on this machine, before one is started.

command.py is the command; each other module is one kind of check, with a function check() that
yields findings. What the worker itself refuses, it is asked (`datasystem_worker --check=json`), so
that the words are those of a start that fails; the rest is read from /proc and /sys.
"""

from .command import EXAMPLES, SUMMARY, add_arguments, run

__all__ = ["EXAMPLES", "SUMMARY", "add_arguments", "run"]
