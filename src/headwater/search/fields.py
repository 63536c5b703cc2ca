"""Fields: what of a table's columns is indexed, and how.

A field belongs to one column and has one kind. In the index it has a name of its own (``f0``, ``f1``, …), so that a
column may be called anything. Beside the fields of the columns an index has a few of its own:

- ``_n``: the numbers of the columns that are null, one term each; "exists" is their absence
- ``_p``, where a field is JSON: the paths at which a row has values (`path_term`), since a value may have no word by
  which it could be found
- ``_o``: the numbers of the columns whose value is too long for a term; predicates that are verified take such rows as
  candidates, whatever the index says
- ``_s`` and ``_d``: which build of a split a document comes from, and its number in that build (`split_builder`)

Numbers become 64-bit integers or floats, dates days, timestamps microseconds since 1970: nothing is rounded to seconds,
which the library's own date type does. Structs, arrays and maps are indexed as JSON, and values in them are found by
their paths, as in ``address.city:oslo``; an array or a scalar has the path ``_``, which need not be named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Literal, get_args

import pyarrow as pa

from headwater.base.errors import InputError, UnsupportedError
from headwater.base.schema import spark_type
from headwater.search.analyzers import Analyzer, parse_analyzer

__all__ = [
    "BUILD", "DOCUMENT", "MAX_TERM_BYTES", "NULLS", "ODD", "PATHS", "Field", "FieldKind", "Fields",
    "kind_of_type", "path_term",
]  # fmt: skip

FieldKind = Literal["text", "keyword", "integer", "float", "boolean", "date", "timestamp", "binary", "ip", "json"]
Record = Literal["basic", "freq", "position"]

NULLS, PATHS, ODD, BUILD, DOCUMENT = "_n", "_p", "_o", "_s", "_d"
MAX_TERM_BYTES = 65_530
"""The library leaves out terms that are longer."""

_NUMERIC: frozenset[FieldKind] = frozenset({"integer", "float", "boolean", "date", "timestamp"})


@dataclass(frozen=True, slots=True)
class Field:
    """One column in an index.

    Parameters
    ----------
    column : str
        its name in the table
    kind : FieldKind
        how it is indexed
    analyzer : str
        of text and JSON: a chain, as `parse_analyzer` takes it
    record : {'basic', 'freq', 'position'}
        of text: whether frequencies (for scores) and positions (for phrases) are kept
    substring : bool
        of text and keywords: whether trigrams are indexed too, so that `contains` needs no list of terms
    """

    column: str
    kind: FieldKind
    analyzer: str = ""
    record: Record = "position"
    substring: bool = False

    @property
    def analysis(self) -> Analyzer:
        """The analyzer."""
        return parse_analyzer(self.analyzer or ("raw" if self.kind == "keyword" else "default"))

    @property
    def is_numeric(self) -> bool:
        """Whether its values are ordered numbers in the index."""
        return self.kind in _NUMERIC

    @property
    def is_text(self) -> bool:
        return self.kind in ("text", "keyword")


@dataclass(frozen=True)
class Fields:
    """The fields of an index, by the order of their numbers."""

    fields: tuple[Field, ...]

    def __iter__(self) -> Any:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f.column for f in self.fields)

    def number(self, column: str) -> int | None:
        """The number of a column's field, in whatever case it is written."""
        exact = [n for n, f in enumerate(self.fields) if f.column == column]
        alike = exact or [n for n, f in enumerate(self.fields) if f.column.lower() == column.lower()]
        return alike[0] if alike else None

    def __getitem__(self, number: int) -> Field:
        return self.fields[number]

    @staticmethod
    def name(number: int) -> str:
        """What the index calls a field."""
        return f"f{number}"

    @staticmethod
    def trigrams(number: int) -> str:
        """What the index calls the trigrams of a field."""
        return f"g{number}"

    @property
    def text(self) -> list[int]:
        """The numbers of the text fields, which are searched where a query names no field."""
        found = [n for n, f in enumerate(self.fields) if f.kind == "text"]
        return found or [n for n, f in enumerate(self.fields) if f.kind == "keyword"]

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(f) for f in self.fields]

    @classmethod
    def from_json(cls, found: Sequence[Mapping[str, Any]]) -> Fields:
        made = cls(tuple(Field(**one) for one in found))
        for f in made:
            if f.kind not in get_args(FieldKind) or f.record not in get_args(Record) or not isinstance(f.column, str):
                raise ValueError(f"a field of kind {str(f.kind)[:80]!r} is not known")
            _ = f.analysis
        return made

    def schema(self) -> Any:
        """The library's schema."""
        import tantivy

        builder = tantivy.SchemaBuilder()
        for number, f in enumerate(self.fields):
            _declare(builder, self.name(number), f)
            if f.substring:
                builder.add_text_field(self.trigrams(number), tokenizer_name="hw_trigram", index_option="basic")
        for own in (NULLS, ODD, *((PATHS,) if any(f.kind == "json" for f in self.fields) else ())):
            builder.add_text_field(own, tokenizer_name="raw", index_option="basic")
        for own in (BUILD, DOCUMENT):
            builder.add_unsigned_field(own, indexed=False, fast=True)
        return builder.build()

    def register(self, index: Any) -> None:
        """Tell an index that was opened about the analyzers of its fields."""
        made = {"hw_trigram": parse_analyzer("trigram")}
        made.update((f"hw_{self.name(n)}", f.analysis) for n, f in enumerate(self.fields) if f.kind in ("text", "json"))
        for name, analyzer in made.items():
            index.register_tokenizer(name, analyzer.build())
            index.register_fast_field_tokenizer(name, analyzer.build())


def _declare(builder: Any, name: str, f: Field) -> None:
    if f.kind == "text":
        builder.add_text_field(name, tokenizer_name=f"hw_{name}", index_option=f.record)
    elif f.kind == "keyword":
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic", fast=True)
    elif f.kind == "json":
        builder.add_json_field(name, tokenizer_name=f"hw_{name}", index_option="position", fast=True)
    else:
        add = {
            "integer": builder.add_integer_field,
            "date": builder.add_integer_field,
            "timestamp": builder.add_integer_field,
            "float": builder.add_float_field,
            "boolean": builder.add_boolean_field,
            "binary": builder.add_bytes_field,
            "ip": builder.add_ip_addr_field,
        }[f.kind]
        add(name, indexed=True, fast=True)


@lru_cache(maxsize=100_000)
def path_term(parent: str, name: str) -> str:
    """The term of ``_p`` for a path: of that of the path above it (of a whole field: its number) and the last name.

    Terms are hashes, so that a path may be of any length.
    """
    return blake2b(f"{parent}\0{name}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def kind_of_type(dtype: pa.DataType) -> FieldKind | None:
    """The kind that a column of a type has where nothing else is asked for; None: it cannot be indexed."""
    types = pa.types
    if types.is_string(dtype) or types.is_large_string(dtype):
        return "text"
    if types.is_integer(dtype):
        return "integer"
    if types.is_floating(dtype) or types.is_decimal(dtype):
        return "float"
    if types.is_boolean(dtype):
        return "boolean"
    if types.is_date(dtype):
        return "date"
    if types.is_timestamp(dtype):
        return "timestamp"
    if types.is_binary(dtype) or types.is_large_binary(dtype):
        return "binary"
    if types.is_struct(dtype) or types.is_map(dtype) or types.is_list(dtype) or types.is_large_list(dtype):
        return "json"
    return None


_TAKES: dict[FieldKind, tuple[FieldKind, ...]] = {
    "text": ("text",),
    "keyword": ("text",),
    "ip": ("text",),
    "json": ("json", "text"),
    "binary": ("binary",),
}


def checked_kind(column: str, dtype: pa.DataType, asked: FieldKind | Literal["numeric"] | None) -> FieldKind:
    """The kind of a column's field; refuses, by name, what cannot be indexed so."""
    natural = kind_of_type(dtype)
    if natural is None:
        raise UnsupportedError.operation(
            f"an index on column `{column}` of type {spark_type(dtype)}",
            "there are no terms to find such values by",
            "leave it out: every column can be returned by a search, since rows come from the table",
        )
    if asked is None:
        return natural
    fits = natural in _NUMERIC if asked == "numeric" else natural in _TAKES[asked]
    if not fits:
        fitting = "numeric" if natural in _NUMERIC else natural
        raise InputError.bad_argument(
            asked, column, f"columns of another type than {spark_type(dtype)}: index it as {fitting}"
        )
    return natural if asked == "numeric" else asked
