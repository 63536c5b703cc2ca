"""kill -9 anywhere: what is left is the last checkpoint or the one that was being made, whole, and nothing else after a sweep.

A store is killed again and again while it lives, each life going on from what the last one left. After each kill the state is compared
with a recomputation of the same history. ``--slow`` kills a thousand times (HEADWATER_TEST_KILLS).
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.incremental.killing import Server
from tests.incremental.state.history import LAYOUTS, contents, expected
from tests.incremental.state.kill_server import CHECKPOINT

from headwater.incremental.store import Store

UNTIL = 13

POINTS = [
    "state.run.before_write",
    "state.run.written",
    "state.run.before_flush",
    "state.run.before_publish",
    "state.run.after_publish",
    "state.merge.begin",
    "state.merge.merged",
    "state.spill.begin",
    "state.checkpoint.before_manifest",
    "storage.put_if_absent.before_publish",
    "storage.put_if_absent.after_publish",
    "storage.delete.before",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server("tests.incremental.state.kill_server", HEADWATER_STATE_MEMORY_BYTES="2MiB")
    yield made
    made.close()


def check(folder: Path, acks: Path, seed: int) -> int:
    """The store is whole, and is that of the last checkpoint or of the one after it; gives its step."""
    done = [int(line) for line in acks.read_text().split()] if acks.exists() else []
    acked = done[-1] if done else -1
    with Store(folder) as store:
        names = store.manifests()
        if not names:
            assert acked == -1
            store.sweep()
            assert os.listdir(folder / "runs") == []
            return -1
        manifest = store.restore()
        assert manifest.passed_over == ()
        step: int = manifest.extra["step"]
        assert step == manifest.epoch
        assert step in (acked, acked + (CHECKPOINT if acked >= 0 else 1))
        store.verify(manifest)
        traces = {name: store.trace(manifest, name, layout) for name, layout in LAYOUTS.items()}
        assert contents(traces) == expected(seed, step)
        del traces
        store.sweep()
        assert set(os.listdir(folder / "runs")) == manifest.files
        with acks.open("a") as f:  # the next life begins here
            f.write(f"{step}\n")
        assert os.listdir(folder / "manifests") == [manifest.name]
    return step


def kill_again_and_again(
    server: Server, folder: Path, seed: int, commands: Iterator[dict[str, Any]], kills: int
) -> int:
    """Kill so often; gives how many lives were cut short."""
    cut = 0
    for life in range(kills):
        place = folder / f"{seed}"
        status = server.live(
            folder=str(place), acks=str(folder / f"{seed}.acks"), seed=seed % 4, until=UNTIL, **next(commands)
        )
        assert status in (0, signal.SIGKILL), life
        cut += status == signal.SIGKILL
        step = check(place, folder / f"{seed}.acks", seed % 4) if place.exists() else -1
        if status == 0:
            assert step == UNTIL - 1
            seed += 1
    return cut


def at_any_moment(server: Server, folder: Path) -> Iterator[dict[str, Any]]:
    """Within the first half of what a whole life takes here and now: a fast machine would be through before a fixed moment."""
    chance = random.Random(1)
    begun = time.monotonic()
    assert server.live(folder=str(folder / "whole"), acks=str(folder / "whole.acks"), seed=0, until=UNTIL) == 0
    whole_ms = 1_000 * (time.monotonic() - begun)
    while True:
        yield {"after_ms": chance.uniform(1, whole_ms / 2)}


@pytest.mark.long
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_point(point: str, server: Server, tmp_path: Path) -> None:
    # The second life meets what the first one left.
    nth = 1 if point == "state.spill.begin" else 3  # how often a run is spilled depends on the moment
    commands = iter([{"point": point, "nth": nth}, {"point": point, "nth": 1}])
    assert kill_again_and_again(server, tmp_path, 0, commands, 2) == 2


@pytest.mark.long
def test_kills_at_any_moment(server: Server, tmp_path: Path) -> None:
    assert kill_again_and_again(server, tmp_path, 0, at_any_moment(server, tmp_path), 15) > 6


@pytest.mark.slow
def test_a_thousand_kills(server: Server, tmp_path: Path) -> None:
    kills = int(os.environ.get("HEADWATER_TEST_KILLS", "1000"))
    chance = random.Random(os.environ.get("HEADWATER_TEST_SEED", "2"))

    def commands() -> Iterator[dict[str, Any]]:
        instants = at_any_moment(server, tmp_path)
        while True:
            if chance.random() < 0.5:
                yield next(instants)
            else:
                yield {"point": chance.choice(POINTS), "nth": chance.randint(1, 8)}

    assert kill_again_and_again(server, tmp_path, 0, commands(), kills) > kills // 3
