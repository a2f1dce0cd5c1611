"""Reads the log of `meson test` and prints the closing line `N passed, N failed`.

A test that speaks TAP (the lit files, the unit tests, the conformance cases) counts once for each of its results;
any other counts once.  A program that died counts as at least one failure.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree as xml

BAD = {"FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS"}


def results_of(junit, name):
    """(passed, failed, skipped) among the TAP results of a test, or None where it has none."""
    for suite in junit.iter("testsuite"):
        cases = suite.findall("testcase")
        if suite.get("name", "").split(".")[-1] != name or any(c.get("name") == name for c in cases):
            continue
        bad = sum(1 for c in cases if c.find("failure") is not None or c.find("error") is not None)
        skipped = sum(1 for c in cases if c.find("skipped") is not None)
        return len(cases) - bad - skipped, bad, skipped
    return None


def show_failures(test):
    """What a TAP program says of its failures, which Meson keeps to itself: `not ok` lines and their comments."""
    for line in test.get("stdout", "").splitlines():
        if line.startswith(("not ok", "#")):
            print(line)


def main(folder):
    if not (folder / "testlog.junit.xml").exists():  # no test has that name
        print("0 passed, 0 failed: no test has run")
        return 1
    junit = xml.parse(folder / "testlog.junit.xml")
    passed = failed = skipped = 0
    for line in (folder / "testlog.json").read_text().splitlines():
        test = json.loads(line)
        name, bad = test["name"].split(" / ")[-1], test["result"] in BAD
        counts = results_of(junit, name)
        if bad and counts:
            show_failures(test)
        if counts is None:
            counts = (0, 1, 0) if bad else (0, 0, 1) if test["result"] == "SKIP" else (1, 0, 0)
        elif bad and not counts[1]:
            counts = (counts[0], 1, counts[2])
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    if skipped:
        print(f"{skipped} skipped: what they need is not on this machine")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
