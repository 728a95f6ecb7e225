# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Python tests in lit: a file is a test, and each function in it a result of its own."""

import fnmatch
import os
import xml.etree.ElementTree

import lit.formats
import lit.Test
import lit.util


class PytestFile(lit.formats.FileBasedTest):
    """Runs files `test_*.py` with pytest.

    A test that is skipped has not passed: it could not run. Slow tests are left out by conftest.py.
    """

    def __init__(self, python, root, build, options, packages=()):
        self.python, self.root, self.options = python, root, options
        # The networks are small: two threads of one training would mostly wait for each other.
        self.environment = {
            "OMP_NUM_THREADS": "1",
            "KAS_BUILD": build,
            "PYTHONPATH": os.pathsep.join([os.path.join(build, "python"), *packages]),
        }

    def getTestsForPath(self, suite, path_in_suite, lit_config, local_config):  # noqa: N802
        name = path_in_suite[-1]
        if fnmatch.fnmatch(name, "test_*.py") and name not in local_config.excludes:
            yield lit.Test.Test(suite, path_in_suite, local_config)

    def execute(self, test, lit_config):
        if test.config.unsupported:
            return lit.Test.Result(lit.Test.UNSUPPORTED, "needs the parameter kas_python")
        report = test.getExecPath() + ".xml"
        os.makedirs(os.path.dirname(report), exist_ok=True)
        if os.path.exists(report):
            os.remove(report)
        command = [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junit-xml={report}", *self.options]
        # The limit is for a function; one that hangs prints where.
        command += ["-o", f"faulthandler_timeout={lit_config.maxIndividualTestTime}"]
        command += ["-o", "faulthandler_exit_on_timeout=true", test.getSourcePath()]
        environment = {**os.environ, **self.environment}
        output, _, code = lit.util.executeCommand(command, self.root, environment, redirect_stderr=True)
        cases = _read_cases(report)
        # All were left out.
        if code == 5 and not cases:
            return lit.Test.Result(lit.Test.UNSUPPORTED, output)
        passed = code == 0 and all(case.code is lit.Test.PASS for case in cases.values())
        result = lit.Test.Result(lit.Test.PASS if passed else lit.Test.FAIL, output)
        for name, case in cases.items():
            result.addMicroResult(name, case)
        return result


def _read_cases(report):
    """The results by name, of a report that may be missing."""
    if not os.path.exists(report):
        return {}
    results = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        bad = any(child.tag in ("failure", "error", "skipped") for child in case)
        code = lit.Test.FAIL if bad else lit.Test.PASS
        results[case.get("name")] = lit.Test.Result(code, elapsed=float(case.get("time")))
    return results
