"""What an index is an index of: a table, its fields, and how splits are cut.

It is kept in the record log (`headwater.derived.record_log`). Version 1::

    {"version": 1, "source": "<table>", "schema": "<Delta schema as JSON, of the columns that are indexed>",
     "fields": [{"column": …, "kind": …, "analyzer": …, "record": …, "substring": …}, …],
     "hot": ["<column>", …],            columns whose values are kept in the splits, for quick answers
     "target_rows": 1000000}            how many rows a split has at most when it is built

The *spec* is a hash of what decides the contents of a split: fields, hot columns and the version of the format. A split
of another spec covers nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import pyarrow as pa

from headwater.base.errors import CorruptionError, HeadwaterError, InputError, SchemaError
from headwater.base.frontier import TableIdentity
from headwater.base.kinds import words_of
from headwater.base.schema import Schema, spark_type
from headwater.derived.outline import Shape
from headwater.derived.sources import Input, identity_of
from headwater.lake.snapshot import Snapshot
from headwater.search.analyzers import parse_analyzer
from headwater.search.fields import Field, FieldKind, Fields, checked_kind, kind_of_type

__all__ = ["TARGET_ROWS", "AskedField", "AskedKind", "Definition", "define"]

AskedKind = FieldKind | Literal["numeric"]
AskedField = tuple[str, AskedKind | None, Mapping[str, Any]]
"""A column, the kind of its field (None: the one that fits its type) and its options."""

_VERSION = 1
_SPLIT_FORMAT = 2
TARGET_ROWS = 1_000_000
_RECORDS = ("basic", "freq", "position")


@dataclass(frozen=True)
class Definition:
    """Which columns of which table are indexed, and how."""

    source: str
    schema: str
    fields: Fields
    hot: tuple[str, ...] = ()
    target_rows: int = TARGET_ROWS

    @classmethod
    def from_json(cls, found: Mapping[str, Any], where: str) -> Definition:
        """Read what `to_json` gives; ``where`` is the log that it was found in."""
        try:
            if found["version"] != _VERSION:
                raise ValueError(f"its version is {found['version']}, and this Headwater knows {_VERSION}")
            fields = Fields.from_json(found["fields"])
            schema = Schema.from_json(found["schema"])
            made = cls(str(found["source"]), found["schema"], fields, tuple(found["hot"]), int(found["target_rows"]))
            if missing := set(made.columns) - set(schema.names):
                raise ValueError(f"its schema lacks {sorted(missing)}")
        except (KeyError, TypeError, ValueError, AttributeError, HeadwaterError) as e:
            raise CorruptionError.state_file("the definition of the index", str(e), where) from e
        return made

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "version": _VERSION,
            "source": self.source,
            "schema": self.schema,
            "fields": self.fields.to_json(),
            "hot": list(self.hot),
            "target_rows": self.target_rows,
        }

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a build reads, those of the fields first."""
        return (*self.fields.columns, *(c for c in self.hot if c not in self.fields.columns))

    @property
    def input(self) -> Input:
        """What is read of the source."""
        return Input(self.source, self.source, Schema.from_json(self.schema).arrow, self.columns)

    @cached_property
    def spec(self) -> str:
        """A hash of what decides the contents of a split."""
        decisive = {"format": _SPLIT_FORMAT, "fields": self.fields.to_json(), "hot": list(self.hot)}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]

    def stamp(self, identity: TableIdentity) -> str:
        """What a split and a snapshot must have in common: the spec, the table, and which columns are read."""
        columns = {c.lower(): identity.columns.get(c.lower(), c) for c in self.columns}
        return _stamp(self.spec, identity.id, tuple(sorted(columns.items())))

    def stamp_of(self, base: Snapshot) -> str:
        """The stamp of splits that cover files of a snapshot."""
        return self.stamp(identity_of(base, self.columns))

    def check(self, name: str, base: Snapshot) -> None:
        """Raise if the source does not have the columns any more, or has others in their place."""
        now = {f.name.lower(): f.type for f in base.arrow_schema}
        kinds = {f.column: f.kind for f in self.fields}
        words = words_of("index")
        for f in self.input.read:
            found = now.get(f.name.lower())
            if found is None:
                raise SchemaError.source_changed(name, self.source, f"it has no column `{f.name}` any more", words)
            if found != f.type and (f.name not in kinds or kind_of_type(found) != kind_of_type(f.type)):
                what = f"its column `{f.name}` is of type {spark_type(found)}, and was of type {spark_type(f.type)}"
                raise SchemaError.source_changed(name, self.source, what, words)

    def __str__(self) -> str:
        listed = ", ".join(f"{f.column} {f.kind.upper()}" for f in self.fields)
        return f"search index on {self.source} ({listed})"


@lru_cache(maxsize=1024)
def _stamp(spec: str, table: str, columns: tuple[tuple[str, str], ...]) -> str:
    """The hash of `Definition.stamp`, which every search asks for."""
    return hashlib.sha256(json.dumps([spec, table, columns]).encode()).hexdigest()[:16]


def define(
    base: Snapshot | Shape,
    source: str,
    *,
    fields: Sequence[AskedField] | None = None,
    text: Sequence[str] | Mapping[str, Any] | str | None = None,
    keyword: Sequence[str] | str | None = None,
    numeric: Sequence[str] | str | None = None,
    binary: Sequence[str] | str | None = None,
    ip: Sequence[str] | str | None = None,
    json: Sequence[str] | str | None = None,
    substring: Sequence[str] | str = (),
    hot: Sequence[str] | str = (),
    analyzer: str = "default",
    target_rows: int = TARGET_ROWS,
) -> Definition:
    """The definition of an index on the columns of a snapshot; errors name the column.

    With ``fields``, these come first, in their order; the other arguments are as in ``lake.index``.
    """
    asked: list[AskedField] = list(fields or ())
    given: list[tuple[FieldKind | Literal["numeric"], Any]] = [
        ("text", text), ("keyword", keyword), ("numeric", numeric), ("binary", binary), ("ip", ip), ("json", json),
    ]  # fmt: skip
    for kind, columns in given:
        for column, options in _named(kind, columns):
            asked.append((column, kind, options))
    if not asked:
        asked = [(f.name, None, {}) for f in base.arrow_schema if kind_of_type(f.type) not in (None, "binary", "json")]
    if not asked:
        raise InputError.bad_argument("text", text, "the columns to index: the table has none that are by themselves")
    made_of: list[Field] = []
    for column, asked_kind, options in asked:
        f = base.schema.field(column, base.where).arrow
        if any(one.column == f.name for one in made_of):
            raise InputError.bad_argument(asked_kind or "fields", column, "each column once")
        made_of.append(_field(f, asked_kind, options, analyzer))
    for column in _list("substring", substring):
        name = base.schema.field(column, base.where).name
        at = next((n for n, one in enumerate(made_of) if one.column == name), None)
        if at is None or not made_of[at].is_text:
            raise InputError.bad_argument("substring", column, "columns that are indexed as text or keyword")
        made_of[at] = replace(made_of[at], substring=True)
    if not isinstance(target_rows, int) or isinstance(target_rows, bool) or target_rows < 1:
        raise InputError.bad_argument("target_rows", target_rows, "a whole number of rows")
    kept = tuple(dict.fromkeys(base.schema.field(c, base.where).name for c in _list("hot", hot)))
    made = Definition(source, "", Fields(tuple(made_of)), kept, target_rows)
    schema = Schema(tuple(base.schema.field(c) for c in made.columns)).to_json()
    return replace(made, schema=schema)


def _field(
    f: pa.Field, asked: FieldKind | Literal["numeric"] | None, options: Mapping[str, Any], analyzer: str
) -> Field:
    kind = checked_kind(f.name, f.type, asked)
    known = {"analyzer", "positions", "frequencies"}
    if unknown := set(options) - known:
        raise InputError.unknown_option(min(unknown), sorted(known))
    chosen = options.get("analyzer", analyzer)
    if not isinstance(chosen, str):
        raise InputError.bad_argument("analyzer", chosen, "a name, or a chain such as 'simple | lowercase'")
    if misplaced := sorted(set(options) - ({"text": known, "json": {"analyzer"}}.get(kind) or set())):
        what = f"no such option for `{f.name}`, which is {kind}"
        raise InputError.bad_argument(misplaced[0], options[misplaced[0]], what)
    chain = "" if kind not in ("text", "json") else str(parse_analyzer(chosen))
    if not options.get("frequencies", True):
        record = "basic"
    else:
        record = "position" if options.get("positions", True) else "freq"
    assert record in _RECORDS
    return Field(f.name, kind, chain, record)  # type: ignore[arg-type]


def _named(kind: str, columns: Any) -> list[tuple[str, Mapping[str, Any]]]:
    if isinstance(columns, Mapping):
        if kind != "text" or not all(isinstance(o, Mapping) for o in columns.values()):
            raise InputError.bad_argument(
                kind, columns, 'a list of columns; text= also takes {"body": {"analyzer": "en_stem"}}'
            )
        return list(columns.items())
    return [(column, {}) for column in _list(kind, columns)]


def _list(name: str, columns: Any) -> list[str]:
    found = [columns] if isinstance(columns, str) else list(columns or ())
    if not all(isinstance(c, str) for c in found):
        raise InputError.bad_argument(name, columns, "the names of columns")
    return found
