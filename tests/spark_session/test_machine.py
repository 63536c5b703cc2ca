"""The limits of a container count."""

from __future__ import annotations

from pathlib import Path

from headwater.spark.machine import cores, memory_bytes


def test_limits_of_a_container(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1073741824\n")
    (tmp_path / "cpu.max").write_text("50000 100000\n")
    assert memory_bytes(tmp_path) == 2**30
    assert cores(tmp_path) == 1


def test_no_limits(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert memory_bytes(tmp_path) == memory_bytes(tmp_path / "nothing") > 2**29
    assert cores(tmp_path) == cores(tmp_path / "nothing") >= 1


def test_an_old_kernel_says_a_huge_number_for_no_limit(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("9223372036854771712\n")
    assert memory_bytes(tmp_path) == memory_bytes(tmp_path / "nothing")
