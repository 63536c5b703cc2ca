"""Past answers: what an online table answered at a moment, byte for byte.

The record log says which frontier was published when (`headwater.derived.record_history`). As long as the files of a
version are there, they answer again. When they are gone, the rows of the keys are read from the source as it was at
that frontier, and put into a file of the same form: an answer is a function of the rows, so its bytes are the same.

A version answers from the moment that its record names. A reader that follows the log from far may have answered from
the one before for a little longer; the answer itself says which version it is of, and can be asked for by that.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from headwater.base.errors import InputError, NotFoundError
from headwater.base.frontier import Frontier
from headwater.derived.record_history import Published
from headwater.lake import snapshot
from headwater.serving.building import Shape, build_layer, layout_of, new_seed, sampled, to_stored
from headwater.serving.keys import KeyBatch, KeyCodec
from headwater.serving.layers import Layers
from headwater.serving.layout import KeyPart
from headwater.serving.online.changes import as_binary, of_keys
from headwater.serving.online.definition import Definition
from headwater.serving.projection import FetchOptions
from headwater.serving.record_file import RecordFile
from headwater.serving.version import TableVersion, VersionFacts

if TYPE_CHECKING:
    from headwater.base.kinds import KindWords
    from headwater.derived.record_history import RecordHistory
    from headwater.derived.record_log import RecordLog
    from headwater.lake.snapshot import Snapshot
    from headwater.lake.table import Table
    from headwater.serving.answer import Answer
    from headwater.serving.store import OnlineStore

__all__ = ["answer_at", "answers_at", "moment_ms", "version_at"]


class Publisher(Protocol):
    """The online table that is asked."""

    kind: ClassVar[KindWords]
    store: OnlineStore
    log: RecordLog
    history: RecordHistory

    @property
    def name(self) -> str:
        """Its name."""

    def source_table(self, name: str) -> Table:
        """A table of its lake."""

    def rows_of(self, meant: Definition, base: Snapshot) -> pa.RecordBatchReader:
        """The rows that a definition serves of a source."""


def moment_ms(known_at: Any) -> float:
    """A moment as a user writes it, in ms; without a zone it is in UTC."""
    found = known_at
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found)
        except ValueError:
            found = None
    if not isinstance(found, datetime):
        expected = "a timestamp such as 2026-01-31 12:00, a frontier, the number of a version, or a column of the keys"
        raise InputError.bad_argument("known_at", known_at, expected)
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp() * 1_000


def version_at(online: Publisher, known_at: Any) -> tuple[Published, float]:
    """The version that was the newest at a moment, and that moment in ms."""
    entries = online.history.entries()
    if isinstance(known_at, Frontier):
        fitting = [one for one in entries if one.frontier == known_at]
        moment = float(fitting[-1].at) if fitting else 0.0
    elif isinstance(known_at, int) and not isinstance(known_at, bool):
        fitting = [one for one in entries if one.number == known_at]
        moment = float(fitting[-1].at) if fitting else 0.0
    else:
        moment = moment_ms(known_at)
        fitting = [one for one in entries if one.at <= moment]
    if not fitting:
        first = _shown(entries[0].at) if entries else None
        raise NotFoundError.not_published(online.name, str(known_at), first, online.kind)
    return fitting[-1], moment


def answer_at(
    online: Publisher,
    keys: Any,
    columns: Sequence[str] | None,
    options: FetchOptions,
    known_at: Any,
    now_ms: float | None = None,
) -> Answer:
    """What the table answered at a moment."""
    from headwater.serving.answer import Answer

    found, moment = version_at(online, known_at)
    with _Opened(online, found, keys) as version:
        frame = version.fetch(keys, columns, options, moment if now_ms is None else now_ms)
    return Answer(frame, frontier=found.frontier, versions={online.name: found.number})


def answers_at(
    online: Publisher, labels: Any, columns: Sequence[str] | None, options: FetchOptions, known_at: str
) -> pa.Table:
    """What the table answered for each label at the moment that a column of it says; with the version in
    ``_version``.
    """
    rows = pa.table(labels) if not isinstance(labels, pa.Table) else labels
    moments = rows.column(known_at)
    if not pa.types.is_timestamp(moments.type):
        raise InputError.bad_argument("known_at", known_at, f"a column of timestamps, and this one is {moments.type}")
    if moments.null_count:
        raise InputError.bad_argument("known_at", known_at, "a moment for each label; some are null")
    exact = moments.cast(pa.timestamp("us", moments.type.tz)).cast(pa.int64()).to_numpy() / 1_000
    entries = online.history.entries()
    starts = np.array([one.at for one in entries], np.float64)
    starts = np.maximum.accumulate(starts) if len(starts) else starts
    place = np.searchsorted(starts, exact, "right") - 1
    if len(place) and int(place.min()) < 0:
        first = _shown(entries[0].at) if entries else None
        raise NotFoundError.not_published(online.name, _shown(exact.min()), first, online.kind)
    parts, order = [], []
    for at in np.unique(place):
        which = np.flatnonzero(place == at)
        some = rows.take(pa.array(which)).drop_columns([known_at])
        with _Opened(online, entries[at], some) as version:
            batch = version.fetch(some, columns, options, exact[which]).batch()
        numbers = pa.array(np.full(len(which), entries[at].number, np.int64))
        parts.append(pa.Table.from_batches([batch]).append_column("_version", numbers))
        order.append(which)
    if not parts:
        with _Opened(online, entries[-1], rows) as version:
            batch = version.fetch(rows.drop_columns([known_at]), columns, options).batch()
        return pa.Table.from_batches([batch]).append_column("_version", pa.array([], pa.int64()))
    return pa.concat_tables(parts).take(pa.array(np.argsort(np.concatenate(order))))


class _Opened:
    """A version that was published, ready to answer for some keys: of its own files, or of the source's rows at its
    frontier.
    """

    def __init__(self, online: Publisher, found: Published, keys: Any) -> None:
        self._online, self._found, self._keys = online, found, keys
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> TableVersion:
        log = self._online.log
        if self._found.number in log.numbers():
            try:
                return self._online.store.version(log.read(self._found.number))
            except NotFoundError:  # superseded files go before their commit does
                pass
        return self._rebuilt()

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _rebuilt(self) -> TableVersion:
        online, found = self._online, self._found
        meant = Definition.from_json(found.definition)
        rows = list(self._rows(meant))
        head, batches = sampled(rows)
        layout = layout_of(meant.stored, meant.key, head, ordered=meant.order_by is not None)
        self._folder = tempfile.TemporaryDirectory(prefix="headwater-past-")
        path = os.path.join(self._folder.name, "0.records")
        build_layer(batches, Shape(layout, new_seed(), 1, meant.order_by), lambda _: path, where=online.name)
        facts = VersionFacts(
            name=online.name,
            number=found.number,
            frontier=found.frontier,
            reach=found.frontier,
            rows=sum(batch.num_rows for batch in rows),
            committed_ms=found.at,
            ttl_ms=meant.ttl_ms,
            event_time=meant.event_time,
        )
        return TableVersion(facts, Layers([[RecordFile(path)]]))

    def _rows(self, meant: Definition) -> Iterator[pa.RecordBatch]:
        """The rows that the source had for the keys."""
        online, frontier = self._online, self._found.frontier
        now = online.source_table(meant.source).snapshot
        identity = frontier.identities.get(meant.source)
        if identity is not None and identity.id != now.state.metadata.id:
            raise NotFoundError.source_replaced(online.name, meant.source, online.kind)
        base = snapshot.at_version(now.storage, frontier[meant.source])
        codec = KeyCodec([KeyPart(name, meant.stored.field(name).type) for name in meant.key])
        given = self._keys if isinstance(self._keys, KeyBatch) else codec.keys(self._keys)
        wanted = as_binary(given)
        for batch in online.rows_of(meant, base):
            found = of_keys(to_stored(batch, meant.stored), codec, wanted)
            if found.num_rows:
                yield found


def _shown(ms: float) -> str:
    return datetime.fromtimestamp(ms / 1_000, UTC).isoformat(timespec="milliseconds")
