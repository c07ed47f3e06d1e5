#!/usr/bin/env python3
"""The platform tag of a wheel: the oldest glibc on which all of its ELF files load.

    wheel_tag.py FOLDER        prints e.g. manylinux_2_34_x86_64

Computed from the symbol versions that the files really ask for, so it is true by construction.
"""
import platform
import sys

import elf

# Nothing older has been supported by any tool for years; a file that needs no versioned symbol gets this.
OLDEST = (2, 17)


def platform_tag(files, machine=None):
    newest = max((version for path in files for version in elf.glibc_versions(path)), default=OLDEST)
    major, minor = max(newest, OLDEST)
    return f"manylinux_{major}_{minor}_{machine or platform.machine()}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(platform_tag(elf.elf_files(sys.argv[1])))
