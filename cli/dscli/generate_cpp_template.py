"""dscli generate_cpp_template: a C++ project that sets and gets a value, with the SDK beside it."""

import argparse
import os
import shutil

from . import console, package
from .output_folder import copy_tree, new_folder
from .validation import checked_path

SUMMARY = "write a small C++ project that uses the cache, with headers and library"
EXAMPLES = """\
examples:
  dscli generate_cpp_template -o /tmp
  /tmp/cpp_template/run.sh                    against the worker @ 127.0.0.1:31501
  /tmp/cpp_template/run.sh 10.0.0.7 31501     against another

Needs CMake 3.16 and a C++17 compiler."""

_LIBRARY = "libdatasystem.so"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output_path",
        metavar="DIR",
        default=".",
        help="the project is made in DIR/cpp_template (default: the current folder)")


def run(args: argparse.Namespace) -> int:
    template, include = package.folder("cpp_template"), package.folder("include")
    library = os.path.join(package.folder("lib"), _LIBRARY)
    if not os.path.isfile(library):
        raise console.CommandError(f"the package has no {library}; reinstall the wheel")
    target = os.path.join(checked_path(args.output_path), "cpp_template")
    with new_folder(target) as folder:
        copy_tree(template, folder)
        copy_tree(include, os.path.join(folder, "include"))
        os.mkdir(os.path.join(folder, "lib"))
        shutil.copy(library, os.path.join(folder, "lib"))
        os.chmod(os.path.join(folder, "run.sh"), 0o700)  # pip keeps no modes
    console.info(f"Cpp template generated successfully at: {target}")
    console.info(f"You can now build and run it with: {os.path.join(target, 'run.sh')} [IP PORT]")
    return 0
