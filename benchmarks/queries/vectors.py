"""What deleted rows cost: an aggregate over all columns of a table with 1% of every file's rows deleted.

The same rows four times: as they lie there with deletion vectors, after OPTIMIZE has written them anew, DuckDB on the bare
files of the latter, and the peers that read vectors at all. A peer that counts deleted rows is named and left out.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
from queries.measuring import Measured, Report, difference, interleaved, timed
from queries.peers import BARE, PEERS, Query, attempt, bare_duckdb, headwater
from queries.point import rows

import headwater as hw
from headwater.lakehouse import Lake

__all__ = ["run"]

ROWS = 12_000_000
FILES = 12
TEXT = (
    "SELECT count(*) AS n, sum(id) AS ids, sum(customer) AS customers, max(amount) AS most, min(amount) AS least, "
    "max(country) AS country, max(day) AS day FROM {table} WHERE amount >= 0"
)


def _opened(lake: Lake, peer: str, text: str) -> pa.Table:
    return PEERS[peer][1](lake, ["marked"])(text)


def run(folder: Path, scale: float, rounds: int, engines: Sequence[str], peers: Sequence[str]) -> Report:
    root = folder / "vectors"
    lake = hw.connect(root)
    per_file = max(1_000, round(ROWS * scale / FILES))
    for number in range(FILES):
        lake.write("marked", rows(number * per_file, per_file))
    lake.table("marked").delete("id % 100 = 7")
    shutil.copytree(root / "marked", root / "packed")
    lake.table("packed").optimize()
    now = lake.table("marked").snapshot.files.values()
    assert all(f.deletion_vector is not None for f in now) and len(now) == FILES
    assert all(f.deletion_vector is None for f in lake.table("packed").snapshot.files.values())

    asked: dict[str, tuple[Query, str]] = {}
    for engine in engines:
        asked[f"hw {engine}, vectors"] = (headwater(lake, engine), "marked")
        asked[f"hw {engine}, after OPTIMIZE"] = (headwater(lake, engine), "packed")
    base, packed = f"hw {engines[0]}, vectors", f"hw {engines[0]}, after OPTIMIZE"
    answer = asked[base][0](TEXT.format(table="marked"))
    assert answer.column("n")[0].as_py() == per_file * FILES - len(range(7, per_file * FILES, 100))
    report = Report(
        f"Full aggregate, {per_file * FILES:,} rows in {FILES} files, 1% deleted by vectors: s "
        f"({rounds} rounds in turns, all answers equal)"
    )
    if BARE in peers:
        asked[f"{BARE}, after OPTIMIZE"] = (bare_duckdb(lake, ["packed"]), "packed")
    for peer in peers:
        if peer != BARE:
            # Opened anew here: some refuse such a table already then.
            tried = attempt(partial(_opened, lake, peer), TEXT.format(table="marked"))
            other = tried if isinstance(tried, str) else difference(answer, tried, exact=False)
            if other is None:
                asked[f"{peer}, vectors"] = (PEERS[peer][1](lake, ["marked"]), "marked")
            else:
                report.notes.append(f"{peer} left out: {other}")
    measured = Measured()
    for number, who in interleaved(list(asked), rounds + 1):
        query, table = asked[who]
        found, sample = timed(partial(query, TEXT.format(table=table)), children="spark" in who)
        other = difference(answer, found, exact=False)
        assert other is None, f"{who}: {other}"
        if number:  # the first round warms
            measured.add(who, sample)
    report.head = ("", "median", "best", "CPU", "wall ratio", "CPU ratio")
    for who in asked:
        wall, best, cpu = measured.wall(who), measured.best(who), measured.cpu(who)
        ratios = (wall / measured.wall(packed), cpu / measured.cpu(packed))
        report.rows.append((who, *(f"{v:.3f}" for v in (wall, best, cpu)), *(f"{v:.2f}" for v in ratios)))
    report.notes.insert(0, f"ratios are to {packed}")
    report.figures = {"runs": measured.figures()}
    return report
