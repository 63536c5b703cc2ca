"""Exports as a kind of derived artefact: how they are defined and opened."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.base.errors import ConflictError, InputError, UnsupportedError
from headwater.base.storage import open_storage
from headwater.derived.environment import Environment
from headwater.derived.kinds import Kind
from headwater.derived.record_log import RecordLog
from headwater.export.definition import Definition, ExportRecord
from headwater.export.export import Export
from headwater.lake.find import condition
from headwater.lake.snapshot import Snapshot
from headwater.sql.statements import CreateArtefact

__all__ = ["KIND", "ExportKind", "define"]


class ExportKind(Kind):
    """Exports."""

    def open(self, name: str, environment: Environment, base: Snapshot | None = None) -> Export:
        """The export of that name."""
        assert base is None, "an export has no table"
        return Export(name, environment)

    def create(self, statement: CreateArtefact, environment: Environment) -> Export:
        """There is no such statement."""
        raise UnsupportedError.operation(
            "CREATE EXPORT", "exports are defined in Python", "lake.export(name, source=…)"
        )


KIND = ExportKind()


def define(
    name: str,
    source: str,
    environment: Environment,
    *,
    to: str | None,
    columns: Sequence[str] | None,
    where: str | None,
) -> Export:
    """The export of that name with this definition, made if it is not there."""
    base = environment.table(source).snapshot
    wanted = condition(base, where)
    names = tuple(base.schema.field(c, base.where).name for c in columns) if columns else tuple(base.schema.names)
    asked = sorted({c for _, c in wanted.columns} - set(names)) if wanted is not None else []
    place = to if to is not None else environment.root.location(f"_headwater/exports/{name}/files")
    location = open_storage(place, environment.root.options or None).url
    table = environment.table(source).name
    meant = Definition(table, names, base.schema.to_json(), where, tuple(asked), location)
    log = RecordLog(environment.root, Export.kind.name, name)
    found = log.newest()
    if found is None:
        if environment.table(name).exists():
            raise InputError.already_exists(name, environment.table(name).location)
        environment.check_free(name)
        try:
            log.commit(0, meant.to_json(), ExportRecord().to_json())
        except ConflictError:  # somebody else was quicker
            return define(name, source, environment, to=to, columns=columns, where=where)
        return Export(name, environment)
    have = Definition.from_json(found.definition)
    if (have.source, have.columns, have.where, have.location) != (table, names, where, location):
        raise InputError.other_definition(name, str(have), have.location)
    return Export(name, environment)
