"""Online tables as a kind of derived artefact: how they are defined and opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from headwater.base.errors import ConflictError, InputError
from headwater.derived import upkeep
from headwater.derived.environment import Environment
from headwater.derived.kinds import Kind
from headwater.derived.record_log import RecordLog
from headwater.lake.snapshot import Snapshot
from headwater.serving.online.definition import Definition, define
from headwater.serving.online.online import Online
from headwater.serving.record import OnlineRecord
from headwater.sql.statements import CreateArtefact, CreateOnlineTable

__all__ = ["KIND", "OnlineKind", "make"]


class OnlineKind(Kind):
    """Online tables."""

    def open(self, name: str, environment: Environment, base: Snapshot | None = None) -> Online:
        """The online table of that name."""
        assert base is None, "an online table has no Delta table"
        return Online(name, environment)

    def create(self, statement: CreateArtefact, environment: Environment) -> Online:
        """What a statement defines."""
        assert isinstance(statement, CreateOnlineTable)
        log = RecordLog(environment.root, Online.kind.name, statement.table)
        if log.newest() is not None:
            if statement.mode == "ignore":
                return Online(statement.table, environment)
            if statement.mode == "error":
                raise InputError.already_exists(statement.table, log.path)
        return make(
            statement.table,
            statement.source,
            environment,
            key=statement.key,
            columns=statement.columns,
            ttl=statement.ttl,
            event_time=statement.event_time,
            order_by=statement.order_by,
            parts=statement.parts,
            replaces=statement.mode == "replace",
        )

    def finish(self, environment: Environment) -> None:
        """Wait until nothing is compacted any more."""
        upkeep.finish(f"online {environment.root.url} ")


KIND = OnlineKind()


def make(
    name: str,
    source: str,
    environment: Environment,
    *,
    key: str | Sequence[str] | None,
    columns: Sequence[str] | None = None,
    ttl: str | timedelta | None = None,
    event_time: str | None = None,
    order_by: str | None = None,
    parts: int = 0,
    replaces: bool = False,
) -> Online:
    """The online table of that name with this definition, made if it is not there."""
    if not key:
        raise InputError.bad_argument("key", key, "the column, or columns, that identify a row")
    table = environment.table(source)
    meant = define(
        table.snapshot,
        table.name,
        key=key,
        columns=columns,
        ttl=ttl,
        event_time=event_time,
        order_by=order_by,
        parts=parts,
    )
    log = RecordLog(environment.root, Online.kind.name, name)
    found = log.newest()
    if found is None:
        if environment.table(name).exists():
            raise InputError.already_exists(name, environment.table(name).location)
        environment.check_free(name)
    else:
        have = Definition.from_json(found.definition)
        if have.meaning == meant.meaning:
            return Online(name, environment)
        if not replaces:
            raise InputError.other_definition(name, str(have), log.path)
    try:
        # Another definition: nothing of what is there counts, and the next refresh builds it.
        record = OnlineRecord()
        if found is not None:
            old = OnlineRecord.from_json(found.record, "the record", log.path)
            record = replace(record, superseded=tuple(sorted(old.files)))
        log.commit(0 if found is None else found.number, meant.to_json(), record.to_json())
    except ConflictError:  # somebody else was quicker
        return make(
            name, source, environment, key=key, columns=columns, ttl=ttl, event_time=event_time, order_by=order_by,
            parts=parts, replaces=replaces,
        )  # fmt: skip
    return Online(name, environment)
