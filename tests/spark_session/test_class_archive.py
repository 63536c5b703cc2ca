"""The archive of Spark's classes: made once, used where it is, and no error where it does not fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.spark.class_archive import archive_file, archive_options
from headwater.spark.java import Java, check_java


def test_each_java_has_a_file_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    java = Java("/usr/bin/java", "17.0.1", 17)
    file = archive_file(java)
    assert file.is_relative_to(tmp_path)
    assert file != archive_file(Java("/usr/bin/java", "17.0.2", 17))
    assert archive_options(java) == []
    file.parent.mkdir(parents=True)
    file.touch()
    assert archive_options(java)[0] == f'"-XX:SharedArchiveFile={file}"'  # quoted, because of the space


def _run(command: list[str], cache: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "SPARK_SUBMIT_OPTS"}
    environment |= {"XDG_CACHE_HOME": str(cache), "HEADWATER_PROGRESS": "off", **more}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


_SESSION = """
import headwater as hw
session = hw.spark(config={"spark.driver.memory": "1g"})
print(session.range(10).count())
"""


@pytest.mark.spark
@pytest.mark.parametrize("content", [b"", b"no archive" * 1_000])
def test_a_file_that_does_not_fit_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    java = check_java()
    file = archive_file(java)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    done = _run([java.path, *archive_options(java), "-version"], tmp_path)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "version" in done.stderr
    assert "archive" not in done.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_warm_keeps_the_classes_and_a_session_takes_them(tmp_path: Path) -> None:
    warm = [sys.executable, "-m", "headwater.cli", "--json", "warm", "--spark"]
    kernels = {"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")} if os.environ.get("NUMBA_CACHE_DIR") else {}
    made = _run(warm, tmp_path, **kernels)
    assert made.returncode == 0, made.stderr
    archive = json.loads(made.stdout)["archive"]
    assert archive["made"]
    assert archive["bytes"] > 10_000_000
    assert [file.suffix for file in Path(archive["file"]).parent.iterdir()] == [".jsa"]  # and nothing half done
    log = tmp_path / "classes.log"
    options = f"-Xlog:class+load:file={log}"
    done = _run([sys.executable, "-W", "ignore", "-c", _SESSION], tmp_path, SPARK_SUBMIT_OPTS=options)
    assert done.stdout.strip() == "10", done.stderr
    lines = [line for line in log.read_text().splitlines() if "org.apache.spark" in line]
    kept = [line for line in lines if "shared objects file (top)" in line]
    assert len(kept) > len(lines) / 2
