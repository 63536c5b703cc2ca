"""2,000 changed rows in a 20M-row table: a merge by deletion vectors against delta-rs's merge.

Both start from the same rows in the same number of files, merge the same source, and must end with the same rows.
Prints CPU seconds and wall of each, and their ratio. Every merge runs in a process of its own, so that its CPU time
is all its own: `make bench` runs it, or::

    python benchmarks/merge.py --rows 20000000 --changed 2000 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import deltalake
import numpy as np
import pyarrow as pa

FILES = 16


def rows(start: int, count: int) -> pa.Table:
    ids = np.arange(start, start + count)
    rng = np.random.default_rng(start)
    return pa.table(
        {
            "id": ids,
            "customer": rng.integers(0, 1_000_000, count),
            "amount": np.round(rng.random(count) * 1000, 2),
            "country": pa.array(np.array(["DE", "FR", "IT", "ES", "PL"])[ids % 5]),
            "day": pa.array((ids % 365).astype("int32"), pa.date32()),
        }
    )


def news(total: int, changed: int) -> pa.Table:
    rng = np.random.default_rng(7)
    ids = np.sort(rng.choice(total, changed * 9 // 10, replace=False))
    ids = np.concatenate([ids, np.arange(total, total + changed - len(ids))])
    table = rows(0, len(ids)).set_column(0, "id", pa.array(ids))
    return table.set_column(2, "amount", pa.array(np.full(len(ids), -1.0)))


def merge_here(path: str, source: pa.Table) -> None:
    from headwater.base.storage import open_storage
    from headwater.lake.table import Table

    merge = Table(open_storage(path), "t").merge(source, on="t.id = s.id")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def merge_delta_rs(path: str, source: pa.Table) -> None:
    merge = deltalake.DeltaTable(path).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def child(which: str, path: str, total: int, changed: int) -> None:
    source = news(total, changed)
    work = {"headwater": merge_here, "delta-rs": merge_delta_rs}[which]
    with tempfile.TemporaryDirectory() as small:  # so that importing and starting up is not counted, for either
        deltalake.write_deltalake(small, rows(0, 1000))
        work(small, rows(500, 1000))
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    work(path, source)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"wall": wall, "cpu": cpu, "rss_mb": after.ru_maxrss / 1024}))


def facts(path: str) -> tuple[object, ...]:
    import polars as pl

    frame = pl.scan_delta(path)
    summed = frame.select(
        pl.len(), pl.col("id").sum(), (pl.col("amount") == -1.0).sum(), pl.col("customer").sum().alias("customers")
    )
    return tuple(summed.collect().row(0))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--changed", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", nargs=2, metavar=("WHICH", "PATH"))
    options = parser.parse_args()
    if options.child:
        child(*options.child, options.rows, options.changed)
        return

    import headwater as hw

    folder = tempfile.mkdtemp(prefix="headwater-bench-")
    try:
        lake = hw.connect(folder)
        per_file = options.rows // FILES
        for i in range(FILES):
            lake.write("base", rows(i * per_file, per_file))
        # delta-rs gets its own table without the feature, since it cannot use it.
        for i in range(FILES):
            lake.table("plain").write(rows(i * per_file, per_file), properties={"delta.enableDeletionVectors": "false"})
        total = per_file * FILES
        results: dict[str, list[dict[str, float]]] = {"headwater": [], "delta-rs": []}
        answers = {}
        for _ in range(options.rounds):
            for which, source in (("headwater", "base"), ("delta-rs", "plain")):
                path = os.path.join(folder, "copy")
                shutil.rmtree(path, ignore_errors=True)
                shutil.copytree(os.path.join(folder, source), path)
                command = [sys.executable, __file__, "--rows", str(total), "--changed", str(options.changed)]
                done = subprocess.run([*command, "--child", which, path], check=True, capture_output=True, text=True)
                results[which].append(json.loads(done.stdout))
                answers[which] = facts(path)
        assert answers["headwater"] == answers["delta-rs"], answers
        print(f"{options.changed:,} changed rows in {total:,}; answers equal: {answers['headwater'][:3]}")
        print(f"{'':12}{'CPU s':>10}{'wall s':>10}{'RSS MB':>10}")
        best = {}
        for which, runs in results.items():
            best[which] = {k: float(np.median([r[k] for r in runs])) for k in ("cpu", "wall", "rss_mb")}
            b = best[which]
            print(f"{which:12}{b['cpu']:10.2f}{b['wall']:10.2f}{b['rss_mb']:10.0f}")
        for k in ("cpu", "wall"):
            print(f"delta-rs / headwater, {k}: {best['delta-rs'][k] / best['headwater'][k]:.1f}x")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
