#!/usr/bin/env python3
# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the results that lit writes, for tools/check.sh.

usage: test-results.py RESULTS.json (--counts | --slowest=COUNT)

--counts prints how many tests passed and how many failed. Every outcome that lit counts as a failure counts as one: a
test that could not run has not passed. Of a Python file its functions count, and the file where it failed without one
of them. --slowest prints those that took longest, with their seconds.
"""

import json
import sys

PASSED = ("PASS", "FLAKYPASS")


def read_tests(path):
    """The tests that were to run. For lit the functions of a Python file are "FILE:FUNCTION", beside "FILE"."""
    with open(path, encoding="utf-8") as file:
        tests = [test for test in json.load(file)["tests"] if test["code"] != "UNSUPPORTED"]
    functions = [test for test in tests if ".py:" in test["name"]]
    explained = {test["name"].split(".py:")[0] + ".py" for test in functions if test["code"] not in PASSED}

    def is_extra(test):
        return test["name"].endswith(".py") and (test["code"] in PASSED or test["name"] in explained)

    return [test for test in tests if not is_extra(test)]


def main(path, option):
    tests = read_tests(path)
    if option == "--counts":
        passed = sum(test["code"] in PASSED for test in tests)
        print(passed, len(tests) - passed)
        return
    slowest = sorted(tests, key=lambda test: -(test["elapsed"] or 0))
    for test in slowest[: int(option.removeprefix("--slowest="))]:
        print(f"{test['elapsed'] or 0:8.1f} s  {test['name']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
