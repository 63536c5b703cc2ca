"""The lives of a store that are killed (`tests.incremental.killing`).

It starts no thread itself. Commands come as JSON lines on stdin: ``{"folder": …, "acks": …, "seed": n, "until": n}`` with ``"after_ms"``, the
moment of the kill, or ``"point"`` and ``"nth"``. The child goes on from the newest checkpoint to step ``until``, and writes a line
to ``acks`` after each checkpoint. The answer is the child's wait status.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

from tests.incremental.killing import serve
from tests.incremental.state.history import LAYOUTS, apply, new_traces, orders_change

from headwater.incremental import spill
from headwater.incremental.run import Run, merged
from headwater.incremental.store import Store
from headwater.incremental.zset import ZSet

CHECKPOINT = 2
SWEEP = 5


def live(command: dict[str, Any]) -> None:
    """One life: restore, go on, checkpoint, sweep, until the end or the kill."""
    acks = os.open(command["acks"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with Store(command["folder"]) as store:
        traces, step = new_traces(), 0
        if store.manifests():
            manifest = store.restore()
            step = manifest.extra["step"] + 1
            for name, trace in traces.items():
                store.load(manifest, name, trace)
        for i in range(step, command["until"]):
            apply(traces, command["seed"], i)
            if i % CHECKPOINT == 0:
                store.checkpoint(i, traces, {"step": i})
                os.write(acks, f"{i}\n".encode())
            if i % SWEEP == 0:
                store.sweep()


def _load_kernels() -> None:
    runs = []
    for step in (0, 1):
        rows, weights = orders_change(0, step)
        runs.append(Run.of(ZSet.packed(LAYOUTS["orders"], rows[:500], weights[:500])))
    left, right = runs
    merged([left, right]).zset()
    spill.merged_somewhere(left, right, None, None, tempfile.gettempdir())
    spill.spilled(runs[0], None, tempfile.gettempdir())
    traces = new_traces()
    for step in (1, 2):
        apply(traces, 0, step)


if __name__ == "__main__":
    serve(live, _load_kernels)
