# Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The command of research: its parts, and its errors."""

import pytest

from kas_research import cli


def test_commands(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    text = capsys.readouterr().out
    for name in ("bench1", "compare", "study", "zoo"):
        assert f"\n    {name}" in text
        with pytest.raises(SystemExit) as exit:
            cli.main([name, "--help"])
        assert exit.value.code == 0 and f"usage: kas-research {name}" in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit:
        cli.main(["search"])
    assert exit.value.code == 2 and "invalid choice: 'search'" in capsys.readouterr().err


def test_errors(tmp_path, capsys):
    for name in ("compare", "study"):
        assert cli.main([name, str(tmp_path / "none.yaml")]) == 1
        assert "none.yaml" in capsys.readouterr().err
