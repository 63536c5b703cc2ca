"""Online tables as a kind of derived artefact: how they are defined and opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from headwater.base.errors import ConflictError, InputError
from headwater.derived import upkeep
from headwater.derived.environment import Environment
from headwater.derived.kinds import Kind
from headwater.derived.outline import Outline, Shape, ShapeOf
from headwater.derived.record_log import RecordLog
from headwater.lake.snapshot import Snapshot
from headwater.serving.online.definition import Definition, define
from headwater.serving.online.online import Online
from headwater.serving.record import OnlineRecord
from headwater.sql.functions.user import UserFunction
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

    def outline(
        self, name: str, options: Mapping[str, Any], shape_of: ShapeOf, functions: Mapping[str, UserFunction]
    ) -> Outline:
        """What an online table with these options would be: ``source``, and those of ``lake.online``."""
        shape = shape_of(options["source"])
        meant = _meant(shape, shape.name, options)
        return Outline(
            reads=(shape.name,),
            lineage={c: (f"{shape.name}.{c}",) for c in (*meant.key, *meant.columns)},
            conditions=tuple(f"{shape.name}.{c}" for c in meant.read if c not in meant.key and c not in meant.columns),
        )

    def difference(self, name: str, options: Mapping[str, Any], meant: Outline, environment: Environment) -> str | None:
        """Why the online table of that name is not the one with these options."""
        table = environment.table(options["source"])
        found = RecordLog(environment.root, Online.kind.name, name).newest()
        if found is None:
            return "there is no online table of that name"
        have = Definition.from_json(found.definition)
        same = have.meaning == _meant(table.snapshot, table.name, options).meaning
        return None if same else f"it has {have} so far"

    def define(self, name: str, options: Mapping[str, Any], environment: Environment) -> Online:
        """The online table with these options, made or changed."""
        given = {**_UNSAID, **options}
        return make(name, given.pop("source"), environment, replaces=True, **given)

    def finish(self, environment: Environment) -> None:
        """Wait until nothing is compacted any more."""
        upkeep.finish(f"online {environment.root.url} ")


KIND = OnlineKind()

_UNSAID: Mapping[str, Any] = MappingProxyType(
    {"key": None, "columns": None, "ttl": None, "event_time": None, "order_by": None, "parts": 0}
)


def _meant(base: Snapshot | Shape, source: str, options: Mapping[str, Any]) -> Definition:
    """The definition by these options."""
    given = {**_UNSAID, **options}
    del given["source"]
    if not given["key"]:
        raise InputError.bad_argument("key", given["key"], "the column, or columns, that identify a row")
    return define(base, source, **given)


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
