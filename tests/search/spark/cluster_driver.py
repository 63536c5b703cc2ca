"""The driver of a standalone cluster's application: it builds an index, and kills an executor while tasks build splits.

Arguments: the master's URL and a folder. Prints a line of JSON. The store of the index is slow: it writes a file when a
split is about to be stored by an executor, and then waits, so a kill hits tasks that have built something.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

from tests.search.spark.notes import QUERIES, notes
from tests.timeseries.cluster_driver import kill_one

import headwater as hw
from headwater.base import settings
from headwater.base.storage import Storage
from headwater.search.cover import Cover
from headwater.search.split_builder import BuiltSplit
from headwater.search.split_store import SplitStore


class SlowStore(SplitStore):
    """A store that takes its time, and says so."""

    def __init__(self, root: Storage, path: str, begun: str) -> None:
        super().__init__(root, path)
        self.begun = begun

    def __reduce__(self) -> tuple[object, ...]:
        return SlowStore, (self.root, self.path, self.begun)

    def add(self, built: BuiltSplit) -> Cover:
        cover = super().add(built)
        Path(self.begun, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(6)
        return cover


def main(url: str, folder: str) -> None:
    config = {
        "spark.executor.memory": "512m",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
        "spark.executor.extraJavaOptions": os.environ["EXECUTOR_JAVA_OPTIONS"],
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.dir": f"file://{folder}/events",
    }
    begun = f"{folder}/begun"
    os.makedirs(f"{folder}/events")
    os.makedirs(begun)
    session = hw.spark(url, config=config)
    lake = hw.connect(f"{folder}/lake", spark=session)
    table = lake.write("notes", notes(300, seed=0))
    for seed in range(1, 4):
        table.append(notes(300, seed=seed))
    table.delete("id % 11 = 5")
    here = lake.index("here", "notes", text="body", keyword="author", numeric="amount", refresh=True)
    made = lake.index("made", "notes", text="body", keyword="author", numeric="amount", target_rows=300)
    made.store = SlowStore(made.store.root, made.store.path, begun)
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(session.sparkContext.applicationId, begun, killed))
    killer.start()
    with settings.override(search_spark_rows=1):
        made.refresh()
    killer.join()
    orphans = len(made.store.orphans(made.record.names))
    same = all(here.count(query) == made.count(query) for query in QUERIES)
    where = "contains(body, 'refund') AND amount > 20"
    reading = (
        session.read.format("headwater").option("index", "made").option("filter", where).load(f"{folder}/lake/notes")
    )
    report = {
        "killed": len(killed),
        "splits": len(made.record.names),
        "verified": made.verify().equal,
        "same": same,
        "orphans": orphans,
        "read": reading.count(),
        "scanned": lake.table("notes").to_arrow(where=where).num_rows,
    }
    print(json.dumps(report), flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
