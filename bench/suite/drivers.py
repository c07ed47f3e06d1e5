"""Processes that run operations against one cache and time them; commands: driver/commands.h."""

import json
import subprocess
import sys
from pathlib import Path

from .servers import BenchError, die_with_parent

PYTHON_DRIVER = Path(__file__).with_name("python_driver.py")


class Driver:
    def __init__(self, command):
        self._name = " ".join(map(str, command[-2:]))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                         preexec_fn=die_with_parent)

    def run(self, *words):
        """The answer to a command: p50_ns, p99_ns, mean_ns."""
        self.begin(*words)
        return self.answer()

    def begin(self, *words):
        self._under_way = " ".join(map(str, words))
        try:
            self._process.stdin.write(self._under_way + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # answer() says so

    def answer(self):
        answer = self._process.stdout.readline()
        if not answer:
            raise BenchError(f"the driver of {self._name} gave up at: {self._under_way}")
        return json.loads(answer)

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def run_together(drivers, *commands):
    """The answers to one command each, which run at the same time; one command: the same for all."""
    for i, driver in enumerate(drivers):
        driver.begin(*commands[i % len(commands)])
    return [driver.answer() for driver in drivers]


def cpp_driver(binary, system, address=""):
    return Driver([str(binary), system, str(address)])


def python_driver(system, address=""):
    return Driver([sys.executable, str(PYTHON_DRIVER), system, str(address)])
