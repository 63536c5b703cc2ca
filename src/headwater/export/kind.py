"""Exports as a kind of derived artefact: how they are defined and opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.base.errors import ConflictError, InputError, UnsupportedError
from headwater.base.storage import open_storage
from headwater.derived.environment import Environment
from headwater.derived.kinds import Kind
from headwater.derived.outline import Outline, Shape, ShapeOf
from headwater.derived.record_log import RecordLog
from headwater.export.definition import Definition, ExportRecord
from headwater.export.export import Export
from headwater.lake.find import condition
from headwater.lake.snapshot import Snapshot
from headwater.sql.functions.user import UserFunction
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

    def outline(
        self, name: str, options: Mapping[str, Any], shape_of: ShapeOf, functions: Mapping[str, UserFunction]
    ) -> Outline:
        """What an export with these options would be: ``source``, ``to``, ``columns``, ``where``."""
        shape = shape_of(options["source"])
        names, asked = _columns(shape, options.get("columns"), options.get("where"))
        return Outline(
            reads=(shape.name,),
            lineage={c: (f"{shape.name}.{c}",) for c in names},
            conditions=tuple(f"{shape.name}.{c}" for c in asked),
        )

    def difference(self, name: str, options: Mapping[str, Any], meant: Outline, environment: Environment) -> str | None:
        """Why the export of that name is not the one with these options."""
        found = RecordLog(environment.root, Export.kind.name, name).newest()
        if found is None:
            return "there is no export of that name"
        have = Definition.from_json(found.definition)
        rest = {key: value for key, value in options.items() if key != "source"}
        table = environment.table(options["source"])
        same = _meaning(have) == _meaning(_meant(table.snapshot, table.name, name, environment, **rest))
        return None if same else f"it is {have} so far"

    def define(self, name: str, options: Mapping[str, Any], environment: Environment) -> Export:
        """The export with these options, made; one that is there is deleted first."""
        if RecordLog(environment.root, Export.kind.name, name).newest() is not None:
            Export(name, environment).delete()
        source, to = options["source"], options.get("to")
        return define(name, source, environment, to=to, columns=options.get("columns"), where=options.get("where"))


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
    table = environment.table(source)
    meant = _meant(table.snapshot, table.name, name, environment, to=to, columns=columns, where=where)
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
    if _meaning(have) != _meaning(meant):
        raise InputError.other_definition(name, str(have), have.location)
    return Export(name, environment)


def _meant(
    base: Snapshot | Shape,
    source: str,
    name: str,
    environment: Environment,
    *,
    to: str | None = None,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> Definition:
    """The definition by these options, with everything checked that can be without reading rows."""
    place = to if to is not None else environment.root.location(f"_headwater/exports/{name}/files")
    location = open_storage(place, environment.root.options or None).url
    names, asked = _columns(base, columns, where)
    return Definition(source, names, base.schema.to_json(), where, asked, location)


def _columns(
    base: Snapshot | Shape, columns: Sequence[str] | None, where: str | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that are exported, and those that only the condition reads."""
    wanted = condition(base, where)
    names = tuple(base.schema.field(c, base.where).name for c in columns) if columns else tuple(base.schema.names)
    asked = sorted({c for _, c in wanted.columns} - set(names)) if wanted is not None else []
    return names, tuple(asked)


def _meaning(one: Definition) -> tuple[object, ...]:
    """What two definitions have in common that are the same."""
    return one.source, one.columns, one.where, one.location
