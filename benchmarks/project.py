"""A whole project that follows its tables: what a change costs against building everything, and how soon a commit is seen everywhere.

    python benchmarks/project.py                                    # the demo's card payments at size M: two million of them
    python benchmarks/project.py --size S --commits 5 --sections change,latency

- *change*: everything is built, then 0.1% of the payments change, and everything is refreshed: in a new process, as a schedule
  does it, and again in that process, as a service does it. Either they are new, as most changes are, or payments of all three
  weeks are corrected, one here and one there. CPU and wall are those of the refresh with the work that it leaves to the
  background; all nodes are verified afterwards.
- *latency*: ``headwater refresh --watch`` in a process of its own follows commits of 100 corrected payments. From the time of
  the commit's file until the new values are read, by another process: from a view by SQL, from the search index, and from the
  online table. A commit is made when the last one was seen, after a random pause.

No peer keeps all of these; the ratio is of refreshing and building the same project in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import headwater as hw
from headwater.demo.cards.stage import FILES
from headwater.demo.cards.world import SIZES, make
from headwater.pipeline.run import Run

SECTIONS = ("change", "latency")
TARGET_RATIO, TARGET_P99_SECONDS = 20.0, 2.0
SHARE = 0.001
ROWS_OF_A_COMMIT = 100
POLL_SECONDS = 0.005
PATIENCE_SECONDS = 120.0
SEED = 5


# -- what the processes do -----------------------------------------------------------------------------------------


def write(folder: Path, size: str) -> None:
    """Make the project, with its tables written and nothing built."""
    shutil.copytree(FILES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    world = make(size)
    with hw.connect(folder / "lake") as lake:
        feed = {"delta.enableChangeDataFeed": "true"}
        lake.write("transactions", world.transactions, partition_by=["day"], properties=feed)
        for name in ("customers", "chargebacks", "support_notes"):
            lake.write(name, getattr(world, name))


def refreshed(project: hw.Project, rows: int = 0) -> dict[str, Any]:
    """Refresh everything: what it took, with what it left to the background."""
    before, start = _cpu(), time.perf_counter()
    run = project.refresh()
    wall = time.perf_counter() - start
    assert run.ok, str(run)
    project.close()
    return {"rows": rows, "cpu": _cpu() - before, "wall": wall, "nodes": nodes_of(run)}


def build(folder: Path) -> dict[str, Any]:
    """Build everything."""
    with hw.Project.load(folder) as project:
        return refreshed(project)


def _cpu() -> float:
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in found)


def nodes_of(run: Run) -> dict[str, dict[str, Any]]:
    return {
        one.name: {"mode": one.refresh.mode, "cpu": one.cpu_seconds, "wall": one.seconds}
        for one in run.values()
        if one.refresh is not None
    }


def changes(folder: Path, kind: str) -> list[dict[str, Any]]:
    """Two changes of 0.1%, one after the other."""
    with hw.Project.load(folder) as project:
        found = [refreshed(project, CHANGES[kind](project.lake, number)) for number in range(2)]
        assert project.verify().ok, "what was measured is right"
    return found


def corrected(lake: hw.Lake, number: int) -> int:
    """Correct payments, some of every hour."""
    table = lake.table("transactions")
    done = table.update({"cents": "cents + 1"}, where=f"transaction_id % {round(1 / SHARE)} = {number + 3}")
    return int(done["numUpdatedRows"])


def appended(lake: hw.Lake, number: int) -> int:
    """Append payments of the last moments."""
    table = lake.table("transactions")
    rows = _new_payments(lake, int(table.count() * SHARE), number)
    table.append(rows)
    return int(rows.num_rows)


def _new_payments(lake: hw.Lake, count: int, number: int) -> pa.Table:
    """Payments of the last hours, after all that there are."""
    found = lake.sql("SELECT max(transaction_id) AS id, max(paid_at) AS at FROM transactions").to_dicts()[0]
    people = lake.table("customers").count()
    dice = np.random.default_rng(SEED + number)
    times = pa.array(
        [int(found["at"].timestamp() * 1e6) + 1_000 * n for n in range(1, count + 1)], pa.timestamp("us", "UTC")
    )
    return pa.table(
        {
            "transaction_id": np.arange(count) + found["id"] + 1,
            "customer_id": dice.integers(0, people, count),
            "merchant": pa.array(["Café Zoé"] * count),
            "paid_at": times,
            "cents": dice.integers(100, 50_000, count),
            "status": pa.array(["paid"] * count),
            "day": times.cast(pa.date32()),
        }
    )


CHANGES: dict[str, Callable[[hw.Lake, int], int]] = {"new payments": appended, "corrections": corrected}


# -- latency -------------------------------------------------------------------------------------------------------


@contextmanager
def watching(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """``headwater refresh --watch``, in a process of its own, that has ended its first round."""
    command = [sys.executable, "-m", "headwater.cli", "refresh", str(folder), "--watch", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["ok"], "the first round"
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def latency(folder: Path, commits: int) -> dict[str, list[float]]:
    """The seconds from each commit until its values were read from a view, an index and an online table."""
    dice = random.Random(SEED)
    with watching(folder) as process, hw.connect(folder / "lake") as lake:
        _drained(process)
        seen: dict[str, list[float]] = {"view": [], "search hit": [], "online answer": []}
        noted = lake.sql("SELECT DISTINCT transaction_id, customer_id FROM cases ORDER BY 1").to_dicts()
        for number in range(commits):
            chosen = dice.sample(noted, min(ROWS_OF_A_COMMIT, len(noted)))
            for name, seconds in _seen_after(lake, chosen, f"mark{number}").items():
                seen[name].append(seconds)
            assert process.poll() is None, "the watch ended by itself"
            time.sleep(dice.uniform(0.0, 0.4))
    return seen


def _drained(process: subprocess.Popen[str]) -> None:
    """Read what the watch says, so that it never waits for a reader."""
    import threading

    assert process.stdout is not None
    threading.Thread(target=process.stdout.read, daemon=True).start()


def _seen_after(lake: hw.Lake, chosen: list[dict[str, Any]], mark: str) -> dict[str, float]:
    table, customer = lake.table("transactions"), chosen[0]["customer_id"]
    index, online = lake.index("case_search"), lake.online("customer_online")
    asked = "SELECT cents FROM customer_spend WHERE customer_id = :id"
    wanted = online.fetch([customer], ["cents"]).to_pylist()[0]["cents"]
    wanted += sum(one["customer_id"] == customer for one in chosen)
    ids = ", ".join(str(one["transaction_id"]) for one in chosen)
    table.update({"cents": "cents + 1", "status": f"'{mark}'"}, where=f"transaction_id IN ({ids})")
    version = table.version
    log = Path(table.location.removeprefix("file://")) / "_delta_log" / f"{version:020d}.json"
    committed = log.stat().st_mtime
    waiting: dict[str, Callable[[], bool]] = {
        "view": lambda: lake.sql(asked, parameters={"id": customer}).scalar() == wanted,
        "search hit": lambda: index.count(f"status:{mark}") > 0,
        "online answer": lambda: online.fetch([customer], ["cents"]).to_pylist()[0]["cents"] == wanted,
    }
    seen: dict[str, float] = {}
    while len(seen) < len(waiting):
        for name, is_there in waiting.items():
            if name not in seen and is_there():
                seen[name] = time.time() - committed
        assert time.time() - committed < PATIENCE_SECONDS, f"{mark} was seen by {', '.join(seen) or 'nobody'} only"
        time.sleep(POLL_SECONDS)
    return seen


# -- the benchmark -------------------------------------------------------------------------------------------------


def child(*arguments: str) -> str:
    """Run a part in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--part", *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def report_change(folder: Path) -> dict[str, Any]:
    built = json.loads(child("build", str(folder)))
    print(f"{'':<30} {'rows':>7} {'CPU s':>8} {'wall s':>8}", flush=True)
    print(f"{'building':<30} {'':>7} {built['cpu']:8.2f} {built['wall']:8.2f}", flush=True)
    figures: dict[str, Any] = {"building": built}
    for kind in CHANGES:
        found = json.loads(child("changes", str(folder), kind))
        for one, where in zip(found, ("new process", "same process"), strict=True):
            one["ratio"], one["wall_ratio"] = built["cpu"] / one["cpu"], built["wall"] / one["wall"]
            missed = "" if one["ratio"] >= TARGET_RATIO else f"; {TARGET_RATIO:.0f} wanted"
            print(
                f"{f'{kind}, {where}':<30} {one['rows']:>7,} {one['cpu']:8.2f} {one['wall']:8.2f}  "
                f"{one['ratio']:.1f} times less CPU, {one['wall_ratio']:.1f} times less wall{missed}",
                flush=True,
            )
            figures[f"{kind}, {where}"] = one
    print("CPU seconds of each node, in the order of the lines above", flush=True)
    for name in built["nodes"]:
        each = "  ".join(f"{one['nodes'][name]['mode']} {one['nodes'][name]['cpu']:.3f}" for one in figures.values())
        print(f"  {name:<16} {each}", flush=True)
    return figures


def report_latency(folder: Path, commits: int) -> dict[str, Any]:
    seen = latency(folder, commits)
    print(f"{'seen in':<16} {'p50 s':>8} {'p99 s':>8} {'worst':>8}  of {commits} commits", flush=True)
    figures: dict[str, Any] = {}
    for name, seconds in seen.items():
        p50, p99 = (float(np.quantile(seconds, q)) for q in (0.5, 0.99))
        figures[name] = {"p50": p50, "p99": p99, "worst": max(seconds), "commits": len(seconds)}
        missed = "" if p99 < TARGET_P99_SECONDS else f"  less than {TARGET_P99_SECONDS:.0f} wanted"
        print(f"{name:<16} {p50:8.3f} {p99:8.3f} {max(seconds):8.3f}{missed}", flush=True)
    return figures


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=sorted(SIZES), default="M", help="that of the demo's world")
    parser.add_argument("--commits", type=int, default=150)
    parser.add_argument("--sections", default=",".join(SECTIONS), help=f"some of {', '.join(SECTIONS)}")
    parser.add_argument("--folder", type=Path, help="where the project is made (default: the temporary folder)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args(arguments)
    options.sections = [part.strip() for part in options.sections.split(",")]
    for section in options.sections:
        if section not in SECTIONS:
            parser.error(f"there is no `{section}`; there are: {', '.join(SECTIONS)}")
    return options


def main() -> None:
    if sys.argv[1:2] == ["--part"]:
        part, place, *rest = sys.argv[2:]
        print(json.dumps(build(Path(place)) if part == "build" else changes(Path(place), rest[0])))
        return
    options = options_of()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {SIZES[options.size]:,} payments", flush=True)
    figures: dict[str, Any] = {"size": options.size, "load": os.getloadavg()[0], "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory(prefix="headwater-project-", dir=options.folder) as scratch:
        folder = Path(scratch) / "cards"
        write(folder, options.size)
        if "change" in options.sections:
            figures["change"] = report_change(folder)
        else:
            child("build", str(folder))
        if "latency" in options.sections:
            figures["latency"] = report_latency(folder, options.commits)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
