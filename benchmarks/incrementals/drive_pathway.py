"""Pathway on the feed, in a process and an environment of its own: run by ``pathway.py`` beside it.

    drive_pathway.py EVENTS GROUPS KIND BATCH HOW ANSWER

HOW is one of

    ingest      the events as a stream with times and deletions, given to nothing
    circuit     the same through the circuit, given to nothing: less ``ingest`` it is what the engine costs
    connector   a Python connector with a commit after each batch, and a callback for each change of the output
    latency     the same, where each batch waits for the output of the one before

Files are as ``feed.py`` says. Figures go to standard output, as JSON, and to ANSWER what the last two computed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

os.environ["PATHWAY_LICENSE_KEY"] = os.environ["PATHWAY_MONITORING_SERVER"] = ""
os.environ["PATHWAY_THREADS"] = "1"

import numpy as np
import pandas as pd
import pathway as pw  # type: ignore[import-not-found]

NULL = np.iinfo(np.int64).min
PATIENCE_S = 60.0


def columns(events: Any, groups: Any, kind: str) -> tuple[Any, Any, Any]:
    """Keys of events, keys and groups of the table: integers or text."""
    if kind == "int":
        return events[:, 1], groups[:, 0], groups[:, 1]
    digits = int(kind) - 1
    names = np.array([f"k{i:0{digits}d}" for i in range(len(groups))], dtype=object)
    keys = np.where(events[:, 1] == NULL, None, names[np.maximum(events[:, 1], 0)])
    return keys, names, np.array([None if g == NULL else f"group-{g:04d}" for g in groups[:, 1]], dtype=object)


def schemas(kind: str) -> tuple[Any, Any]:
    key, value, group = (int, int, int) if kind == "int" else (str | None, int | None, str | None)
    events = pw.schema_builder(
        {"id_": pw.column_definition(dtype=int, primary_key=True)}
        | {n: pw.column_definition(dtype=t) for n, t in (("k", key), ("v", value))}
    )
    table = {"k": pw.column_definition(dtype=str if kind != "int" else int, primary_key=True)}
    return events, pw.schema_builder(table | {"g": pw.column_definition(dtype=group)})


def circuit(events: Any, groups: Any, kind: str) -> Any:
    if kind != "int":
        events = events.filter(events.v.is_not_none() & events.k.is_not_none())
        events = events.select(k=pw.unwrap(events.k), v=pw.unwrap(events.v))
    kept = events.filter(events.v > 100)
    joined = kept.join(groups, kept.k == groups.k).select(g=groups.g, v=kept.v)
    v = pw.this.v
    return joined.groupby(pw.this.g).reduce(
        g=pw.this.g,
        n=pw.reducers.count(),
        s=pw.reducers.sum(v),
        a=pw.reducers.avg(v),
        mn=pw.reducers.min(v),
        mx=pw.reducers.max(v),
    )


class Batches(pw.io.python.ConnectorSubject):  # type: ignore[misc]
    """Commits each batch; with ``waits``, only when the output of the one before has come."""

    def __init__(self, rows: list[tuple[dict[str, Any], int]], batch: int, *, waits: bool) -> None:
        super().__init__()
        self.rows, self.batch, self.waits = rows, batch, waits
        self.arrived = threading.Event()
        self.steps: list[float] = []

    def run(self) -> None:
        for at in range(0, len(self.rows), self.batch):
            self.arrived.clear()
            start = time.perf_counter()
            for row, weight in self.rows[at : at + self.batch]:
                if weight > 0:
                    self.next(**row)
                else:
                    self.delete(**row)
            self.commit()
            if self.waits:
                if not self.arrived.wait(PATIENCE_S):
                    raise TimeoutError(f"no output for the batch at {at}")
                self.steps.append(time.perf_counter() - start)


def main() -> None:
    events_file, groups_file, kind, batch_text, how, answer_file = sys.argv[1:]
    batch = int(batch_text)
    events = np.fromfile(events_file, dtype="<i8").reshape(-1, 4)
    groups = np.fromfile(groups_file, dtype="<i8").reshape(-1, 2)
    keys, table_keys, table_groups = columns(events, groups, kind)
    values = events[:, 2]
    if kind != "int":
        values = np.array([None if v == NULL else v for v in values.tolist()], dtype=object)
    events_schema, groups_schema = schemas(kind)
    frame = pd.DataFrame({"k": table_keys, "g": table_groups})
    table = pw.debug.table_from_pandas(frame, schema=groups_schema)
    state: dict[Any, tuple[Any, ...]] = {}
    subject = None
    if how in {"ingest", "circuit"}:
        stream = pd.DataFrame({"id_": events[:, 0], "k": keys, "v": values})
        stream["__time__"] = 2 + 2 * (np.arange(len(events)) // batch)
        stream["__diff__"] = events[:, 3]
        rows = pw.debug.table_from_pandas(stream, schema=events_schema)
        pw.io.null.write(rows if how == "ingest" else circuit(rows, table, kind))
        if how == "ingest":
            pw.io.null.write(table)
    else:
        names = ("id_", "k", "v")
        listed = zip(events[:, 0].tolist(), keys.tolist(), values.tolist(), events[:, 3].tolist(), strict=True)
        ready = [(dict(zip(names, row[:3], strict=True)), row[3]) for row in listed]
        subject = Batches(ready, batch, waits=how == "latency")
        rows = pw.io.python.read(subject, schema=events_schema, autocommit_duration_ms=None)
        changed = [False]

        def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: ARG001
            changed[0] = True
            if is_addition:
                state[key] = tuple(row[c] for c in ("g", "n", "s", "mn", "mx", "a"))
            elif key in state and state[key][:6] == tuple(row[c] for c in ("g", "n", "s", "mn", "mx", "a")):
                del state[key]

        def on_time_end(time: int) -> None:  # noqa: ARG001
            if changed[0]:
                changed[0] = False
                subject.arrived.set()

        pw.io.subscribe(circuit(rows, table, kind), on_change, on_time_end=on_time_end)
    cpu, start = time.process_time(), time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    figures = {"wall": time.perf_counter() - start, "cpu": time.process_time() - cpu}
    shown = (
        " ".join("null" if v is None else repr(v) if isinstance(v, float) else str(v) for v in r)
        for r in state.values()
    )
    Path(answer_file).write_text("".join(f"{line}\n" for line in shown))
    print(json.dumps({**figures, "steps": subject.steps if subject else []}))


if __name__ == "__main__":
    main()
