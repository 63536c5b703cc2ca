"""How the command line behaves whatever the verb: help, exit codes, errors, streams."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.base.errors import NotFoundError
from headwater.cli import main
from headwater.cli._screen import Screen
from headwater.cli._verbs import all_verbs, verb_names

Capture = pytest.CaptureFixture[str]


def test_help_names_every_verb(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for name, verb in all_verbs().items():
        assert f"  {name:<10} {verb.SUMMARY}\n" in out


def test_no_words_is_help(capsys: Capture) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("Keeps everything")


@pytest.mark.parametrize("verb", all_verbs())
def test_help_of_a_verb(verb: str, capsys: Capture) -> None:
    """Also of those that cannot do without an argument."""
    for words in ([verb, "--help"], ["--help", verb], [verb, "-h"]):
        assert main(words) == 0
        out, err = capsys.readouterr()
        assert out.startswith(f"usage: headwater {verb}") and "--json" in out
        assert err == ""


def test_help_is_instant() -> None:
    def cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    costs = []
    for _ in range(3):
        before = cpu()
        subprocess.run([sys.executable, "-m", "headwater.cli", "--help"], capture_output=True, check=True)
        costs.append(cpu() - before)
    assert min(costs) < 0.15


def test_unknown_verb(capsys: Capture) -> None:
    assert main(["docter"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    verbs = ", ".join(verb_names())
    assert err == f"error[E8001]: no verb `docter`\n  hint: did you mean `doctor`? verbs: {verbs}\n"


def test_unknown_option(capsys: Capture) -> None:
    assert main(["doctor", "--jso"]) == 2
    assert capsys.readouterr().err == (
        "error[E8003]: unrecognized arguments: --jso\n  hint: did you mean `--json`? see `headwater doctor --help`\n"
    )


def test_version(capsys: Capture) -> None:
    assert main(["--version"]) == 0
    assert main(["--version", "--json"]) == 0
    assert capsys.readouterr().out == 'headwater 0.1.0\n{\n  "version": "0.1.0"\n}\n'


def fail_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(arguments: argparse.Namespace, screen: Screen) -> int:
        raise error

    monkeypatch.setattr("headwater.cli.doctor.run", run)


def test_an_error_is_lines_on_stderr(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(NotFoundError.column("amout", ["amount"], where="orders"), monkeypatch)
    assert main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error[E1002]: no column `amout`\n")
    assert "  hint: did you mean `amount`?" in err
    assert "Traceback" not in err


def test_an_error_under_json_is_a_document_too(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(NotFoundError.column("amout", ["amount"], where="orders"), monkeypatch)
    assert main(["--json", "doctor"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "E1002"


def test_a_bug_is_one_line_unless_debug(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(ValueError("odd\n\tat java.lang.Thread"), monkeypatch)
    assert main(["doctor"]) == 1
    assert capsys.readouterr().err == (
        "error[E9001]: unexpected ValueError: odd\n  hint: run it again with --debug to see where\n"
    )
    assert main(["--debug", "doctor"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_colour_only_on_a_terminal_without_no_color(tmp_path: Path) -> None:
    import pty

    def said(**environment: str) -> bytes:
        parent, child = pty.openpty()
        subprocess.run(
            [sys.executable, "-m", "headwater.cli", "docter"], env=os.environ | environment, stderr=child, check=False
        )
        os.close(child)
        with os.fdopen(parent, "rb") as stream:
            return stream.read1()

    assert b"\x1b[1;31merror[E8001]:" in said(TERM="xterm", NO_COLOR="")
    assert b"\x1b" not in said(TERM="xterm", NO_COLOR="1")
