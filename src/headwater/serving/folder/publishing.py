"""Publishing: from the newest date folder to a version of an online table.

One `FolderPublisher` looks after one table; whoever runs it (the follower process of a server) calls `tick` when it
asks to be called. A tick looks at the source, and if there is a partition that is not served yet, builds record files
of it and commits them: that commit is the one moment of change. The frontier of such a table is its own name at the
date as a number, ``user_features@20240114``.

A partition that is refused (`error` says why) is not read again until it changes; meanwhile the newest one that is as
it should be is served, and never one that is older than what is served already. Storage that fails is asked again after
a second, then two, then four, up to a minute or the table's ``poll_interval``.

The log of records holds as definition, version 1::

    {"version": 1, "origin": "folder", "location": "<url>", "key": [...], "columns": {"<name>": ["<dtype>",
    <nullable>]},
     "ttl_ms": <n> or null, "event_time": "<column>" or null, "order_by": "<column>" or null, "parts": <n>,
     "partition": {"day": "2024-01-14", "fingerprint": "<hex>", "files": <n>, "bytes": <n>}}
"""

from __future__ import annotations

import hashlib
import logging
import os
import random
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cached_property
from typing import Any, Protocol

from headwater.base import events, faults
from headwater.base.errors import HeadwaterError, InputError, PartitionError, StorageError
from headwater.base.frontier import Frontier, TableIdentity
from headwater.base.storage import Storage, open_storage
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, sampled
from headwater.serving.commits import Change, Commits, Head
from headwater.serving.config import TableConfig
from headwater.serving.folder.discovery import Discovery, Partition, discover, look_at
from headwater.serving.folder.loading import Loading
from headwater.serving.record import LayerEntry, OnlineRecord

__all__ = ["FolderPublisher", "Publisher"]

_log = logging.getLogger("headwater.serve")
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_FALLBACKS = 4
_TWICE, _CHANGED = "E1704", "E1736"


class Publisher(Protocol):
    """What a follower process runs: something that brings one table forward from time to time."""

    name: str
    """The table."""
    error: HeadwaterError | None
    """Why the newest rows are not served; None if they are."""

    def tick(self) -> float:
        """Do what is due, and give the seconds until there is something to do again. It does not raise."""


class FolderPublisher:
    """Publishes the newest date folder of one table.

    Parameters
    ----------
    name : str
        of the table
    table : TableConfig
        whose source is s3 or local
    root : Storage
        the server's data folder
    clock : callable, optional
        seconds that only grow
    """

    def __init__(
        self, name: str, table: TableConfig, root: Storage, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name, self.table = name, table
        self.commits = Commits(root, name)
        self.error: HeadwaterError | None = None
        self.served: str | None = None
        """The date that is served, as far as it is known."""
        self.skipped: tuple[str, ...] = ()
        """Folders that are newer and not complete, in a few words each."""
        self.failures = 0
        """How often looking or loading has failed since it last succeeded."""
        self._clock = clock
        self._due = clock()
        self._refused: dict[str, HeadwaterError] = {}

    @cached_property
    def source(self) -> Storage:
        """Where the date folders lie; opened where it is used, since a client of S3 does not survive a fork."""
        folders = self.table.source.folders
        assert folders is not None, "other sources have no date folders"
        return open_storage(folders.location, folders.options)

    # -- the protocol ----------------------------------------------------------------------------------------------

    def tick(self) -> float:
        """Look at the source if it is time to, and publish what is new; gives the seconds until the next look."""
        left = self._due - self._clock()
        if left > 0:
            return left
        transient = False
        try:
            self.publish()
            self._succeeded()
        except HeadwaterError as e:
            transient = _may_pass(e)
            self._failed(e)
        except Exception as e:  # noqa: BLE001  the follower outlives whatever goes wrong with one table
            transient = True
            self._failed(PartitionError.unreadable(f"it could not be loaded: {type(e).__name__}: {e}", self.name))
        pause = self._pause() if transient else self.table.poll_interval.total_seconds()
        self._due = self._clock() + pause
        return pause

    def _pause(self) -> float:
        """Seconds to wait after a failure that may pass: the longer the more there were."""
        longest = max(_LONGEST_PAUSE_S, self.table.poll_interval.total_seconds())
        pause: float = min(_FIRST_PAUSE_S * 2.0 ** min(self.failures - 1, 20), longest)
        return pause * random.uniform(0.9, 1.1)

    def _succeeded(self) -> None:
        if self.error is not None:
            _log.info("%s is well again", self.name)
        self.error, self.failures = None, 0

    def _failed(self, error: HeadwaterError) -> None:
        if self.error is None or (self.error.code, self.error.message) != (error.code, error.message):
            _log.warning("%s: [%s] %s (%s)", self.name, error.code, error.message, error.where)
        self.error = _without_frames(error)
        self.failures += 1

    # -- publishing ------------------------------------------------------------------------------------------------

    def publish(self) -> bool:
        """Publish the newest partition unless it is served already; whether there was something to do.

        Raises
        ------
        PartitionError
            there is none, or it is not as it should be; what was served before is served on
        """
        definition, head = self._definition(), self.commits.head()
        have: Mapping[str, Any] = head.definition or {}
        served = have["partition"] if _meaning(have) == _meaning(definition) and self._has_files(head) else None
        have = have if served is not None else {}
        self.served = None if served is None else served["day"]
        found = discover(self.source)
        self.skipped = found.skipped
        newest = self._newest(found, self.served)
        if newest.fingerprint not in self._refused:
            if have == {**definition, "partition": _described(newest)}:
                self.commits.sweep_once()
                return False
            if served == _described(newest):  # only how long rows are good for has changed
                self.commits.change(lambda now, _: _redefined(now, {**definition, "partition": served}))
                return True
            if self._is_published(newest, definition):
                self._refused = {}
                return True
        error = self._refused[newest.fingerprint]
        self._fall_back(definition, served)
        raise error

    def _has_files(self, head: Head) -> bool:
        """Whether the files of a commit are there; somebody may have emptied the folder."""
        folder = self.commits.store.folder.folder
        return head.record is not None and all(os.path.exists(os.path.join(folder, n)) for n in head.record.files)

    def _fall_back(self, definition: Mapping[str, Any], served: Mapping[str, Any] | None) -> None:
        """Publish the newest partition that is as it should be, though it is not the newest of all, if it is news."""
        complete = discover(self.source, most=_FALLBACKS).complete
        known = {one.fingerprint for one in complete}
        self._refused = {name: error for name, error in self._refused.items() if name in known}
        for partition in complete:
            if served is not None and (partition.name < served["day"] or _described(partition) == served):
                return
            if partition.fingerprint not in self._refused and self._is_published(partition, definition):
                return

    def _newest(self, found: Discovery, served: str | None) -> Partition:
        """The newest partition; an error if there is none, or none as new as the one that is served."""
        if found.newest is None:
            if served is not None:
                raise PartitionError.gone(served, None, self.source.url)
            raise PartitionError.none(self.source.url, found.skipped)
        if served is not None and found.newest.name < served:
            raise PartitionError.gone(served, found.newest.name, self.source.url)
        return found.newest

    def _is_published(self, partition: Partition, definition: Mapping[str, Any]) -> bool:
        """Publish a partition; False if it was refused."""
        whole = {**definition, "partition": _described(partition)}
        try:
            self.commits.change(lambda _, number: self._built(partition, whole, number))
        except HeadwaterError as e:
            if _may_pass(e):
                raise
            self._refused[partition.fingerprint] = _without_frames(e)
            return False
        self.served = partition.name
        return True

    def _definition(self) -> dict[str, Any]:
        table = self.table
        return {
            "version": 1,
            "origin": "folder",
            "location": self.source.url,
            "key": list(table.key),
            "columns": {name: [column.dtype, column.nullable] for name, column in table.columns.items()},
            "ttl_ms": None if table.ttl is None else round(table.ttl / timedelta(milliseconds=1)),
            "event_time": table.event_time,
            "order_by": table.order_by,
            "parts": table.parts,
        }

    def _built(self, partition: Partition, definition: Mapping[str, Any], number: int) -> Change:
        """Write the record files of a partition."""
        table, store, where = self.table, self.commits.store, self.source.location(partition.name)
        faults.point("online.publish.begin", self.name)
        loading = Loading(self.source, partition, table)
        schema = loading.expected.schema
        with events.task(f"load {self.name} {partition.name}", unit="rows") as task:
            head, rows = sampled(loading.batches())
            layout = layout_of(schema, table.key, head, ordered=table.order_by is not None)
            shape = Shape(layout, new_seed(), table.parts, table.order_by)
            try:
                written = build_layer(
                    rows, shape, lambda part: store.new_file(number, part), where=where, advance=task.advance
                )
            except InputError as e:
                if e.code == _TWICE:
                    e.advice = ("what was served before is served on; write each key once, or declare `order_by`",)
                raise
        entry = LayerEntry.of(written)
        if look_at(self.source, partition.day) != partition:
            store.delete_files(entry.files)
            raise PartitionError.changed(partition.name, self.source.url)
        store.upload(entry.files)
        identity = hashlib.sha256(self.source.url.encode()).hexdigest()[:32]
        frontier = Frontier({self.name: partition.number}).identified({self.name: TableIdentity(identity)})
        record = OnlineRecord(layers=(entry,), frontier=frontier, reach=frontier)
        count = entry.rows
        if table.order_by is not None:  # of several records with one key, one counts
            count = sum(len(located.records) for located in store.layers(record).live())
        record = OnlineRecord(layers=(entry,), frontier=frontier, reach=frontier, rows=count)
        return Change(definition, record, "full", loading.rows, count)


def _without_frames(error: HeadwaterError) -> HeadwaterError:
    """An error to keep: the frames that it went through would keep the rows alive that they hold."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _may_pass(error: HeadwaterError) -> bool:
    """Whether the same partition may be fine the next time."""
    return isinstance(error, StorageError) or error.code in (_CHANGED, "E4001", "E4003")


def _meaning(definition: Mapping[str, Any]) -> dict[str, Any]:
    """What decides about rows and layout, apart from the partition."""
    return {name: value for name, value in definition.items() if name not in ("partition", "ttl_ms")}


def _described(partition: Partition) -> dict[str, Any]:
    return {
        "day": partition.name,
        "fingerprint": partition.fingerprint,
        "files": len(partition.files),
        "bytes": partition.bytes,
    }


def _redefined(now: Head, definition: Mapping[str, Any]) -> Change | None:
    return None if now.record is None else Change(definition, now.record, None)
