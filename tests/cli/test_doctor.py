"""`headwater doctor` on this machine, and on machines that lack something."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from headwater.cli import _checks, main
from headwater.testing.s3_server import S3Server


def doctor(arguments: Sequence[str] = (), **environment: str) -> tuple[int, str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "JAVA_HOME"))}
    done = subprocess.run(
        [sys.executable, "-m", "headwater.cli", "doctor", *arguments],
        env=env | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.spark
@pytest.mark.s3
def test_a_good_machine(s3: S3Server) -> None:
    code, out, err = doctor(["--json", "--storage", s3.url("doctor")], **s3.options)
    report = json.loads(out)
    assert {check["check"]: check["status"] for check in report["checks"]} == dict.fromkeys(
        ("python", "settings", "packages", "java", "memory", "disk", "spark", "lake", "storage"), "ok"
    ), out
    assert (code, err, report["ok"]) == (0, "", True)


@pytest.mark.long
def test_old_java_is_a_line_with_a_hint(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.22\" 2024-01-16' >&2\n")
    java.chmod(0o755)
    code, out, err = doctor(PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert code == 1
    lines = out.splitlines()
    fail = next(line for line in lines if line.startswith("fail"))
    assert fail == f"fail  java      [E7001] Java 11.0.22 is too old: Spark needs Java 17 or newer ({java})"
    assert lines[lines.index(fail) + 1].startswith("      hint: install a JDK 17+")
    assert "warn  spark     not tried: Java is needed first" in lines
    assert err == f"1 of {len([line for line in lines if line[0] != ' '])} checks failed: java\n"


@pytest.mark.long
def test_no_java(tmp_path: Path) -> None:
    code, out, _ = doctor(["--json"], PATH=str(tmp_path))
    java = next(check for check in json.loads(out)["checks"] if check["check"] == "java")
    assert code == 1
    assert java["status"] == "fail"
    assert java["detail"] == "[E7001] Java was not found: Spark needs Java 17 or newer"


def test_a_server_that_ignores_conditions_is_found_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from headwater.base.storage import LocalStorage

    monkeypatch.setattr(LocalStorage, "put_if_absent", LocalStorage.put)
    finding = _checks._storage(str(tmp_path))
    assert finding.status == "fail"
    assert "let 8 of 8 racing writers win" in finding.detail


def test_an_endpoint_without_a_bucket_is_mentioned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(_checks, "_spark", lambda: _checks.Finding("spark", "ok", ""))
    findings = {finding.check: finding for finding in _checks.examine()}
    assert findings["storage"].status == "warn"
    assert findings["storage"].hint is not None


def test_unknown_settings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_FSINC", "no")
    finding = _checks._settings()
    assert finding.status == "warn"
    assert "HEADWATER_FSINC" in finding.detail
    assert "HEADWATER_FSYNC" in (finding.hint or "")


def test_usage() -> None:
    assert main(["doctor", "--s3"]) == 2
