"""Adds up JUnit files of ctest and pytest and prints `N passed, N failed`, with `, N skipped` where there are any.

A missing file counts as one failure: its suite did not run. Exits 1 when anything failed or nothing ran.
"""
import sys
import xml.etree.ElementTree as ElementTree


def count(path):
    """(passed, failed, skipped) of one file."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed += 1
            print(f"failed: {case.get('classname')}: {case.get('name')}")
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped


def main(paths):
    passed = failed = skipped = 0
    for path in paths:
        try:
            counts = count(path)
        except (OSError, ElementTree.ParseError) as reason:
            print(f"failed: {path}: {reason}")
            counts = (0, 1, 0)
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
