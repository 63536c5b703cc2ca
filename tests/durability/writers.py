"""The processes of the concurrency tests: writers of their own keys and of a shared counter, readers, and upkeep.

Each role is a function of the table's location, run in a process of its own. What it did is written as JSON at the end, for the test to
hold against the table. ``python -m tests.durability.writers`` has everything imported, and forks a process for each role it is told on stdin, as
to start Python takes longer than the role does. It never computes anything itself, so no thread exists when it forks.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401  (processes that are forked need not load it again)
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from headwater.base.errors import ConflictError
from headwater.base.storage import open_storage
from headwater.lake import merge, optimize, vacuum  # noqa: F401
from headwater.lake.table import Table

ROOT = Path(__file__).parents[2]
COUNTER = -1
SCHEMA = pa.schema([("id", pa.int64()), ("owner", pa.int64()), ("v", pa.int64())])


def _open(location: str, options: dict[str, str] | None) -> Table:
    return Table(open_storage(location, options), "t")


def write(location: str, owner: int, commits: int, options: dict[str, str] | None = None) -> dict[str, Any]:
    """Append, update, delete and merge rows of its own, and count up the shared row; returns its model."""
    t, dice = _open(location, options), random.Random(owner)
    model: dict[int, int] = {}
    next_id, counted, versions = owner * 1_000_000, 0, []
    for _ in range(commits):
        kind = dice.choice(["append", "append", "update", "delete", "merge", "count"])
        some = dice.sample(sorted(model), min(len(model), 3))
        if kind == "append" or (not some and kind in ("update", "delete")):
            new = {next_id + n: dice.randrange(100) for n in range(4)}
            next_id += len(new)
            done = t.append(_rows(owner, new))
            model |= new
        elif kind == "update":
            done = t.update({"v": "v + 1000"}, where=f"id IN ({', '.join(map(str, some))})")
            model |= {key: model[key] + 1000 for key in some}
        elif kind == "delete":
            done = t.delete(f"id IN ({', '.join(map(str, some))})")
            for key in some:
                del model[key]
        elif kind == "merge":
            new = {key: -dice.randrange(100) for key in [*some, next_id]}
            next_id += 1
            merge = t.merge(_rows(owner, new), on=["id"])
            done = merge.when_matched_update_all().when_not_matched_insert_all().execute()
            model |= new
        else:
            done = t.update({"v": "v + 1"}, where=f"id = {COUNTER}")
            counted += 1
        versions.append(done.version)
    return {"model": {str(k): v for k, v in model.items()}, "counted": counted, "versions": versions}


def _rows(owner: int, values: dict[int, int]) -> pa.Table:
    return pa.table({"id": list(values), "owner": [owner] * len(values), "v": list(values.values())}, schema=SCHEMA)


def write_with_delta_rs(location: str, owner: int, commits: int) -> dict[str, Any]:
    """Append and delete rows of its own through the other implementation of Delta."""
    from deltalake import DeltaTable, write_deltalake
    from deltalake.exceptions import CommitFailedError

    dice, next_id, done = random.Random(owner), owner * 1_000_000, 0
    model: dict[int, int] = {}
    while done < commits:
        try:
            if not model or dice.random() < 0.7:
                new = {next_id + n: dice.randrange(100) for n in range(4)}
                write_deltalake(location, _rows(owner, new), mode="append")
                next_id += len(new)
                model |= new
            else:
                gone = min(model)
                DeltaTable(location).delete(f"id = {gone}")
                del model[gone]
        except CommitFailedError:
            continue  # it does not run a delete again by itself
        done += 1
    return {"model": {str(k): v for k, v in model.items()}, "counted": 0, "versions": []}


def read(location: str, stop: str, options: dict[str, str] | None = None) -> dict[str, Any]:
    """Read every version it sees twice, until the file ``stop`` is there."""
    t, seen, last, over = _open(location, options), 0, -1, False
    while not over:
        over = Path(stop).exists()  # looked at before: it reads once, however late it was started
        pinned = t.at(t.version)
        assert pinned.version >= last, "versions never go back"
        last = pinned.version
        first = pinned.to_arrow().sort_by("id")
        assert pinned.to_arrow().sort_by("id").equals(first), f"version {last} is not repeatable"
        assert len(set(first["id"].to_pylist())) == first.num_rows == pinned.count(), f"version {last}"
        seen += 1
    return {"seen": seen, "last": last}


def keep_up(location: str, stop: str, hours: float, options: dict[str, str] | None = None) -> dict[str, Any]:
    """OPTIMIZE and VACUUM, over and over, until the file ``stop`` is there."""
    t, optimized, removed, lost = _open(location, options), 0, 0, 0
    owners = itertools.cycle(range(20)) if t.snapshot.partition_columns else itertools.repeat(None)
    over = False
    while not over:
        over = Path(stop).exists()
        try:
            owner = next(owners)
            where = None if owner is None else f"owner = {owner}"
            optimized += t.optimize(where=where)["numRemovedFiles"] > 0
        except ConflictError:
            lost += 1
        removed += len(t.vacuum(retention_hours=hours, enforce_retention=False))
        time.sleep(0.05)
    return {"optimized": optimized, "removed": removed, "lost": lost}


def append_once(location: str, owner: int, app: str, number: int) -> dict[str, Any]:
    """Append a row under a transaction id that others use, too."""
    done = _open(location, None).append(_rows(owner, {number: owner}), txn=(app, number))
    return {"skipped": done.skipped, "version": done.version}


def create(location: str, owner: int) -> dict[str, Any]:
    """Write to a table that others make at the same moment."""
    done = _open(location, None).write(_rows(owner, {owner: owner}), txn=("create", 1))
    return {"skipped": bool(done and done.skipped)}


ROLES: dict[str, Callable[..., dict[str, Any]]] = {
    f.__name__: f for f in (write, write_with_delta_rs, read, keep_up, append_once, create)
}


class Writers:
    """The process that forks the others, which all end before it does."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._started = folder, 0
        environ = {**os.environ, "HEADWATER_FSYNC": "false", "HEADWATER_THREADS": "1", "HEADWATER_PROGRESS": "off"}
        environ |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.durability.writers"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environ
        )

    def _ask(self, **command: Any) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def start(self, role: str, **arguments: Any) -> tuple[int, Path]:
        """Begin a role, and give its process and the file of what it did."""
        out = self._folder / f"{self._started}.json"
        self._started += 1
        return self._ask(role=role, arguments=arguments, out=str(out)), out

    def results(self, started: Sequence[tuple[int, Path]]) -> list[dict[str, Any]]:
        """What each process did, when all have ended."""
        ended = [self._ask(wait=process) for process, _ in started]
        for status, (_, out) in zip(ended, started, strict=True):
            assert status == 0, out.read_text()[-3000:] if out.exists() else f"it ended with {status}"
        return [json.loads(out.read_text()) for _, out in started]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def _forked(role: str, arguments: dict[str, Any], out: str) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        Path(out).write_text(json.dumps(ROLES[role](**arguments)))
        status = 0
    except BaseException:  # noqa: BLE001 (the test is told)
        Path(out).write_text(traceback.format_exc())
    finally:
        os._exit(status)


def main() -> None:
    for line in sys.stdin:
        command = json.loads(line)
        found = os.waitpid(command["wait"], 0)[1] if "wait" in command else _forked(**command)
        print(found, flush=True)


if __name__ == "__main__":
    main()
