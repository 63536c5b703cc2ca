"""Search indexes as a kind of derived artefact: how they are defined and opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.base.errors import ConflictError, InputError
from headwater.base.packages import required
from headwater.derived.environment import Environment
from headwater.derived.kinds import Kind
from headwater.derived.narrowing import Conditions, Narrowed
from headwater.derived.outline import Outline, ShapeOf
from headwater.derived.port import PinnedTables
from headwater.derived.record_log import RecordLog
from headwater.lake.relation import Relation
from headwater.lake.snapshot import Snapshot
from headwater.search.definition import Definition, define
from headwater.search.discovery import forget_names
from headwater.search.index import SearchIndex
from headwater.search.narrowing import narrowed
from headwater.search.record import IndexRecord
from headwater.search.statement import options_of
from headwater.search.table_function import search_function
from headwater.sql.functions.user import UserFunction
from headwater.sql.query import Arguments
from headwater.sql.statements import CreateArtefact, CreateSearchIndex

__all__ = ["KIND", "IndexKind", "make"]


class IndexKind(Kind):
    """Search indexes."""

    def open(self, name: str, environment: Environment, base: Snapshot | None = None) -> SearchIndex:
        """The index of that name."""
        assert base is None, "an index has no Delta table"
        return SearchIndex(name, environment)

    def create(self, statement: CreateArtefact, environment: Environment) -> SearchIndex:
        """What a statement defines."""
        assert isinstance(statement, CreateSearchIndex)
        log = RecordLog(environment.root, SearchIndex.kind.name, statement.table)
        if log.newest() is not None:
            if statement.mode == "ignore":
                return SearchIndex(statement.table, environment)
            if statement.mode == "error":
                raise InputError.derived_exists(statement.table, SearchIndex.kind, environment.root.url)
        replaces = statement.mode == "replace"
        return make(statement.table, statement.source, environment, replaces=replaces, **options_of(statement))

    def outline(
        self, name: str, options: Mapping[str, Any], shape_of: ShapeOf, functions: Mapping[str, UserFunction]
    ) -> Outline:
        """What an index with these options would be: ``on``, and those of ``lake.index``."""
        required("tantivy", "a search index", "search")
        source, rest = _split(options)
        shape = shape_of(source)
        meant = define(shape, shape.name, **rest)
        return Outline(reads=(shape.name,), conditions=tuple(f"{shape.name}.{c}" for c in meant.columns))

    def difference(self, name: str, options: Mapping[str, Any], meant: Outline, environment: Environment) -> str | None:
        """Why the index of that name is not the one with these options."""
        source, rest = _split(options)
        table = environment.table(source)
        log = RecordLog(environment.root, SearchIndex.kind.name, name)
        found = log.newest()
        if found is None:
            return "there is no index of that name"
        have = Definition.from_json(found.definition, log.path)
        wanted = define(table.snapshot, table.name, **rest)
        return None if have.to_json() == wanted.to_json() else f"it is a {have} so far"

    def define(self, name: str, options: Mapping[str, Any], environment: Environment) -> SearchIndex:
        """The index with these options, made or changed."""
        source, rest = _split(options)
        return make(name, source, environment, replaces=True, **rest)

    def table_function(
        self, name: str, arguments: Arguments, environment: Environment, pinned: PinnedTables
    ) -> Relation:
        """``search(…)``."""
        assert name == "search"
        return search_function(arguments, environment, pinned)

    def narrowed(self, asked: Conditions, environment: Environment) -> Narrowed | None:
        """The rows that an index of the table names."""
        return narrowed(asked, environment)


KIND = IndexKind()


def _split(options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The source, and the other options."""
    return options["on"], {name: value for name, value in options.items() if name != "on"}


def make(name: str, source: str, environment: Environment, *, replaces: bool = False, **options: Any) -> SearchIndex:
    """The index of that name with this definition, made if it is not there."""
    required("tantivy", "a search index", "search")
    table = environment.table(source)
    meant = define(table.snapshot, table.name, **options)
    log = RecordLog(environment.root, SearchIndex.kind.name, name)
    for _ in range(10):
        found = log.newest()
        record = IndexRecord()
        if found is None:
            if environment.table(name).exists():
                raise InputError.already_exists(name, environment.table(name).location)
            environment.check_free(name)
        else:
            have = Definition.from_json(found.definition, log.path)
            if have.to_json() == meant.to_json():
                return SearchIndex(name, environment)
            if not replaces:
                raise InputError.other_definition(name, str(have), log.path)
            old = IndexRecord.from_json(found.record, "the record", log.path)
            record = IndexRecord(superseded=tuple(sorted(old.names)))
        try:
            log.commit(0 if found is None else found.number, meant.to_json(), record.to_json())
        except ConflictError:  # somebody else was quicker
            continue
        forget_names(environment.root)
        return SearchIndex(name, environment)
    raise ConflictError.lost("another definition was committed first", 0, SearchIndex.kind.name, log.path)
