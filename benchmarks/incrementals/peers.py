"""The peers that live outside of this environment: pathway in one of its own, DBSP as a program of Rust.

Both are put into a folder outside of the tree, by default ``~/.cache/headwater-peers``, with ``--install``; what is not there
is not measured. DBSP takes some minutes to build and needs cargo.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from incrementals.feed import Feed, read_answer
from incrementals.ours import Run
from queries.measuring import Sample

__all__ = ["Dbsp", "Pathway", "PathwayRun"]

HERE = Path(__file__).parent
PATHWAY = "pathway==0.33.0"
_PATIENCE_S = 1_800


def _figures(command: list[str | Path], **environment: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=_PATIENCE_S,
        env={**os.environ, **environment},
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stderr[-2_000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@dataclass(frozen=True)
class Dbsp:
    """The crate ``dbsp``, one worker; see ``benchmarks/peers/dbsp``."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "target" / "release" / "dbsp-peer"

    @property
    def here(self) -> bool:
        return self.program.is_file()

    def version(self) -> str:
        lock = (self.folder / "dbsp" / "Cargo.lock").read_text()
        return lock.split('name = "dbsp"\nversion = "')[1].split('"')[0]

    def install(self) -> None:
        """Build it from a copy, so that cargo writes nothing into the tree; for this machine's processor, as our kernels are."""
        source, start = self.folder / "dbsp", time.perf_counter()
        shutil.copytree(HERE.parent / "peers" / "dbsp", source, dirs_exist_ok=True)
        added = {"CARGO_TARGET_DIR": str(self.folder / "target"), "RUSTFLAGS": "-C target-cpu=native"}
        subprocess.run(["cargo", "build", "--release"], cwd=source, env={**os.environ, **added}, check=True)
        print(f"built dbsp {self.version()} in {time.perf_counter() - start:.0f} s", file=sys.stderr)

    def run(self, feed: Feed, folder: Path, first: int, batch: int) -> Run:
        events, groups = feed.write(folder)
        answer = folder / "dbsp.txt"
        found = _figures([self.program, events, groups, feed.kind, str(first), str(batch), answer])
        return Run(
            read_answer(answer),
            Sample(found["first_wall"], found["first_cpu"]),
            Sample(found["wall"], found["cpu"]),
            found["steps"],
        )


@dataclass(frozen=True)
class PathwayRun:
    """What pathway took in one way of running."""

    sample: Sample
    steps: list[float]
    answer: pa.Table


@dataclass(frozen=True)
class Pathway:
    """Pathway with one worker, no licence key and no telemetry; see ``drive_pathway.py``."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def here(self) -> bool:
        return any((self.folder / "venv").glob("lib/*/site-packages/pathway"))

    def version(self) -> str:
        found = next((self.folder / "venv").glob("lib/*/site-packages/pathway-*.dist-info"))
        return found.name.removeprefix("pathway-").removesuffix(".dist-info")

    def install(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", self.folder / "venv"], check=True)
        subprocess.run([self.python, "-m", "pip", "install", "-q", PATHWAY], check=True)

    def run(self, feed: Feed, folder: Path, batch: int, how: str) -> PathwayRun:
        events, groups = feed.write(folder)
        answer = folder / "pathway.txt"
        found = _figures([self.python, HERE / "drive_pathway.py", events, groups, feed.kind, str(batch), how, answer])
        return PathwayRun(Sample(found["wall"], found["cpu"]), found["steps"], read_answer(answer))
