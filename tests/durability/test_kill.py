"""kill -9, crashes and errors at every named point of every write path, and kills at random instants.

The points are not listed here: a clean run of each path records which it reaches, and each of them is then made to fail.
``pytest tests/durability --slow`` also kills a thousand times (HEADWATER_TEST_KILLS) at random instants and hits.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.durability.write_paths import BY_NAME, PATHS, State, WritePath, check_after, state_of

import headwater as hw
from headwater.base import settings
from headwater.base.errors import HeadwaterError
from headwater.testing.faults import FaultPlan, InjectedError, SimulatedCrash

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWATER_FSYNC", "false")  # a killed process loses no page of the system's cache


class Bench:
    """Prepared lakes, one for each path, with the state before and after the act and the points on the way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0
        self._known: dict[str, tuple[State, State, list[str]]] = {}
        self._whole_ms: dict[str, float] = {}

    def about(self, path: WritePath) -> tuple[State, State, list[str]]:
        """The states before and after, and the points reached in order."""
        if path.name not in self._known:
            template = self.folder / f"{path.name}-template"
            path.prepare(hw.connect(template))
            before = state_of(template)
            copy = self.fresh(path)
            with FaultPlan() as plan:
                path.act(hw.connect(copy))
            self._known[path.name] = before, state_of(copy), plan.reached
        return self._known[path.name]

    def whole_ms(self, path: WritePath, killer: Any) -> float:
        """How long the act takes here when nobody ends it."""
        if path.name not in self._whole_ms:
            folder = self.fresh(path)
            answer = killer(path=path.name, folder=str(folder))
            assert answer["status"] == 0, path.name
            self._whole_ms[path.name] = answer["ms"]
            shutil.rmtree(folder)
        return self._whole_ms[path.name]

    def fresh(self, path: WritePath) -> Path:
        """A copy of the prepared lake."""
        self.count += 1
        copy = self.folder / f"{path.name}-{self.count}"
        shutil.copytree(self.folder / f"{path.name}-template", copy)
        return copy


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWATER_FSYNC", "false")
        folder = tmp_path_factory.mktemp("kill")
        yield Bench(folder)
        shutil.rmtree(folder)


def by_path(path: WritePath) -> str:
    return path.name


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS, ids=by_path)
def test_an_error_at_any_point_is_typed_and_leaves_the_version_before(path: WritePath, bench: Bench) -> None:
    before, after, reached = bench.about(path)
    for number, point in enumerate(dict.fromkeys(reached)):
        folder = bench.fresh(path)
        failed: Exception | None = None
        with FaultPlan().raise_at(point):
            try:
                path.act(hw.connect(folder))
            except (HeadwaterError, InjectedError) as e:
                failed = e
        # Between two calls of storage it stands for a bug or an interrupt, which comes through as it is.
        assert failed is None or isinstance(failed, HeadwaterError) or point.startswith("lake."), f"{point}: {failed!r}"
        found = check_after(folder, path, before, after, others=number == 0)
        if after.version > before.version:
            assert (found.version == after.version) == (failed is None), f"{point}: {failed}"
        shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS, ids=by_path)
def test_a_crash_at_any_point_leaves_before_or_after(path: WritePath, bench: Bench) -> None:
    before, after, reached = bench.about(path)
    for number, point in enumerate(dict.fromkeys(reached)):
        folder = bench.fresh(path)
        with FaultPlan().crash_at(point), pytest.raises(SimulatedCrash):
            path.act(hw.connect(folder))
        check_after(folder, path, before, after, others=number % 4 == 1)
        shutil.rmtree(folder)


def test_every_point_in_the_source_is_reached_by_some_path(bench: Bench) -> None:
    source = [*(ROOT / "src/headwater/lake").rglob("*.py"), *(ROOT / "src/headwater/base").rglob("*.py")]
    named = {p for file in source for p in re.findall(r"faults\.point\(\s*\"([^\"]+)\"", file.read_text())}
    reached = {point for path in PATHS for point in bench.about(path)[2]}
    # Dropping a table is no write path of a table, and has its own test below; Spark's points are for Spark's tests, and
    # those of erasing for tests/proof/test_forget.py, which asks for each of them.
    elsewhere = ("lake.spark.", "lake.erasure.")
    assert {p for p in named - reached if not p.startswith(elsewhere)} == {"lake.drop.before_delete"}


@pytest.fixture(scope="module")
def killer() -> Iterator[Any]:
    """Runs a command in the kill server and gives its answer."""
    environ = {**os.environ, "HEADWATER_FSYNC": "false", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tests.durability.kill_server"]
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT, env=environ
    )
    assert server.stdin is not None and server.stdout is not None
    assert server.stdout.readline() == b"ready\n"

    def kill(**command: Any) -> dict[str, Any]:
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(command).encode() + b"\n")
        server.stdin.flush()
        answer: dict[str, Any] = json.loads(server.stdout.readline())
        return answer

    yield kill
    server.stdin.close()
    server.stdout.close()
    server.wait()


def kill_at_a_point(path: WritePath, bench: Bench, killer: Any, dice: random.Random, *, others: bool) -> None:
    before, after, reached = bench.about(path)
    position = dice.randrange(len(reached))
    point, nth = reached[position], Counter(reached[: position + 1])[reached[position]]
    folder = bench.fresh(path)
    answer = killer(path=path.name, folder=str(folder), point=point, nth=nth)
    assert os.WTERMSIG(answer["status"]) == signal.SIGKILL, f"{point} #{nth}"
    check_after(folder, path, before, after, others=others)
    shutil.rmtree(folder)


def kill_at_an_instant(path: WritePath, bench: Bench, killer: Any, dice: random.Random, *, others: bool) -> bool:
    """Returns whether the kill came before the act was over."""
    before, after, _ = bench.about(path)
    folder = bench.fresh(path)
    answer = killer(path=path.name, folder=str(folder), after_ms=dice.uniform(0.05, 0.9) * bench.whole_ms(path, killer))
    check_after(folder, path, before, after, others=others)
    shutil.rmtree(folder)
    return bool(os.WIFSIGNALED(answer["status"]))


@pytest.mark.long
@pytest.mark.parametrize("path", PATHS[::2], ids=by_path)
def test_kill_at_a_point(path: WritePath, bench: Bench, killer: Any) -> None:
    kill_at_a_point(path, bench, killer, random.Random(path.name), others=False)


def test_kill_at_random_instants(bench: Bench, killer: Any) -> None:
    dice = random.Random(7)
    hit = sum(kill_at_an_instant(path, bench, killer, dice, others=False) for path in PATHS[1::3])
    assert hit > 0


@pytest.mark.slow
def test_a_thousand_kills(bench: Bench, killer: Any) -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    dice, hit, total = random.Random(seed), 0, int(os.environ.get("HEADWATER_TEST_KILLS", "1000"))
    for number in range(total):
        path = dice.choice(PATHS)
        others = number % 5 == 0
        if number % 2:
            kill_at_a_point(path, bench, killer, dice, others=others)
            hit += 1
        else:
            hit += kill_at_an_instant(path, bench, killer, dice, others=others)
    print(f"{hit} of {total} kills came in time")
    assert hit > total / 2


@pytest.mark.parametrize("nth", [1, 2, 4, 5])
def test_a_drop_that_crashed_can_be_repeated(tmp_path: Path, nth: int) -> None:
    BY_NAME["append"].prepare(hw.connect(tmp_path))
    with FaultPlan().crash_at("lake.drop.before_delete", nth=nth), pytest.raises(SimulatedCrash):
        hw.connect(tmp_path).drop("t")
    lake = hw.connect(tmp_path)
    if "t" in lake:
        lake.drop("t")
    assert lake.tables() == []
    BY_NAME["create_with_rows"].act(lake)
    assert lake.table("t").count() == 60


def test_files_and_folders_are_flushed_before_the_commit_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power cut may undo is not tested by killing: the order of the flushes is."""
    flushed: list[str] = []
    fsync = os.fsync

    def record(fd: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{fd}"))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", record)
    with settings.override(fsync=True):
        t = hw.connect(tmp_path / "deep" / "lake").write("t", [{"id": 1, "p": "a"}], partition_by=["p"])
    data = next(iter((Path(t.location) / "p=a").glob("*.parquet")))
    names = [os.path.basename(f) for f in flushed]
    commit = next(i for i, name in enumerate(names) if name.startswith(".00000000000000000000.json"))
    assert any(data.name in name for name in names[:commit]), "the rows"
    for folder in (data.parent, Path(t.location), tmp_path / "deep" / "lake", tmp_path / "deep", tmp_path):
        assert str(folder) in flushed[:commit], f"the name of what lies in {folder}"
    assert flushed[-1] == str(Path(t.location) / "_delta_log")
