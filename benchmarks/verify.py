"""Verifying large views: how long it takes, and how much memory, against comparing both sides whole.

    python benchmarks/verify.py                                  # 50 million rows; takes minutes and some gigabytes of disk
    python benchmarks/verify.py --rows 1000000 --whole-rows 1000000
    python benchmarks/verify.py --shapes filter

A lake is made in a temporary folder, by a process of its own. Each view is then verified by a new process, whose seconds, CPU seconds and
largest size are printed: those of the whole process, with Python, Arrow, DuckDB and machine code. At a smaller size the same view is also compared
in the old way, with both sides in memory as Arrow tables; the ratios are of these two. The answers are checked before a figure is printed.

- *filter*: a projection with strings, floats and decimals, of all rows
- *group*: sums of floats and decimals by a key that has 0.63 different values for each row
- *wrong*: as *group*, with one row too many, so that a partition is read again and compared row by row
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import headwater as hw
from headwater.base.change import ChangeBatch
from headwater.derived.pairing import unpaired
from headwater.lake import write

SHAPES = {
    "filter": "SELECT id, name, price * 2 AS double_price, amount FROM source WHERE id >= 0",
    "group": "SELECT key, sum(price) AS price, sum(amount) AS amount, count(*) AS n FROM source GROUP BY key",
    "wrong": "SELECT key, sum(price) AS price, sum(amount) AS amount, count(*) AS n FROM source GROUP BY key",
}
_MOST_BYTES = 1_000_000_000


@dataclass(frozen=True)
class Measured:
    """What one process found, and what it took."""

    found: str
    missing: int
    extra: int
    rows: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int


# -- what the processes do -------------------------------------------------------------------------------------------------


def build(folder: str, shape: str, rows: int) -> None:
    """Make a lake with a table and a view."""
    import duckdb

    lake = hw.connect(folder)
    with duckdb.connect(config={"temp_directory": f"{folder}.spill"}) as con:
        source = con.sql(
            f"SELECT i AS id, (hash(i) % {rows})::BIGINT AS key, 'name ' || (hash(i) % 1000) AS name, "
            f"(hash(i * 7) % 100000) / 7.0 AS price, (hash(i + 3) % 100000)::DECIMAL(18, 2) AS amount FROM range({rows}) t(i)"
        )
        lake.write("source", source.to_arrow_reader(100_000))
    # Whoever maintains it makes no difference to verifying; built from scratch it needs no state.
    view = lake.view("view", SHAPES[shape], policy="full")
    view.refresh()
    if shape == "wrong":
        write.append(view.table.storage, next(iter(view.read())).slice(0, 1))


def verify(folder: str, how: str) -> Measured:
    """Verify the view of a lake: by digests, or whole."""
    view = hw.connect(folder).view("view")
    start = time.perf_counter()
    if how == "digests":
        found = view.verify()
        facts = (str(found), found.missing_rows, found.extra_rows, found.rows)
    else:
        expected, actual = view.recompute(view.frontier).read_all(), view.to_arrow()
        difference = ChangeBatch.diff(expected, actual)
        floats = [f.name for f in expected.schema if f.type == "double"]
        left, right = unpaired(difference.deleted(), difference.inserted(), floats)
        facts = ("compared whole", len(left), len(right), actual.num_rows)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    return Measured(*facts, seconds, used.ru_utime + used.ru_stime, _peak_bytes())


def _peak_bytes() -> int:
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None, "the system does not say how much memory a process has had"
    return int(found[1]) * 1024


# -- the benchmark ---------------------------------------------------------------------------------------------------------


def child(*arguments: str) -> str:
    """Run a part in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--part", *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout


def measured(folder: str, shape: str, how: str) -> Measured:
    found = Measured(**json.loads(child("verify", folder, how)))
    wrong = int(shape == "wrong")
    assert (found.missing, found.extra) == (0, wrong), f"{shape}, {how}: {found}"
    return found


def line(shape: str, rows: str, one: Measured, ratio: str = "") -> str:
    megabytes = one.peak_bytes / 1e6
    return f"{shape:<8} {rows:>11} {one.seconds:9.1f} {one.cpu_seconds:9.1f} {megabytes:9,.0f}  {ratio}"


def run(shape: str, rows: int, scratch: Path, *, whole: bool) -> dict[str, object]:
    """Build one view, verify it, and print a line for each way."""
    folder = str(scratch / f"{shape}-{rows}")
    child("build", folder, shape, str(rows))
    by_digests = measured(folder, shape, "digests")
    print(line(shape, f"{by_digests.rows:,}", by_digests, by_digests.found), flush=True)
    figures: dict[str, object] = {"digests": asdict(by_digests)}
    if whole:
        other = measured(folder, shape, "whole")
        assert other.rows == by_digests.rows, "both ways compare the same rows"
        ratio = (
            f"whole; by digests {by_digests.cpu_seconds / other.cpu_seconds:.2f}x of the CPU time, "
            f"{by_digests.peak_bytes / other.peak_bytes:.2f}x of the memory"
        )
        print(line(shape, f"{other.rows:,}", other, ratio), flush=True)
        figures["whole"] = asdict(other)
    elif by_digests.peak_bytes > _MOST_BYTES:
        print(f"         more than the {_MOST_BYTES / 1e6:,.0f} MB that are wanted", flush=True)
    subprocess.run(["rm", "-rf", folder], check=True)
    return figures


def main() -> None:
    if sys.argv[1:2] == ["--part"]:
        part, folder, *rest = sys.argv[2:]
        if part == "build":
            build(folder, rest[0], int(rest[1]))
        else:
            print(json.dumps(asdict(verify(folder, rest[0]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of the source; 0 leaves the large size out")
    parser.add_argument("--whole-rows", type=int, default=5_000_000, help="the size at which both ways are measured")
    parser.add_argument(
        "--shapes", default=",".join(SHAPES), help=f"some of {', '.join(SHAPES)}, with commas between them"
    )
    parser.add_argument("--folder", type=Path, help="where the lakes are made (default: the temporary folder)")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    options = parser.parse_args()
    shapes = [shape.strip() for shape in options.shapes.split(",")]
    for shape in shapes:
        if shape not in SHAPES:
            parser.error(f"there is no `{shape}`; there are: {', '.join(SHAPES)}")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
    print(f"{'view':<8} {'rows':>11} {'seconds':>9} {'CPU s':>9} {'peak MB':>9}", flush=True)
    figures: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="headwater-verify-", dir=options.folder) as scratch:
        for rows, whole in ((options.whole_rows, True), (options.rows, False)):
            for shape in shapes if rows else ():
                figures[f"{shape} {rows}"] = run(shape, rows, Path(scratch), whole=whole)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
