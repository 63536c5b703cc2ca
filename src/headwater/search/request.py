"""Requests: what is asked of an index, checked, and as a query of the library."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from headwater.base.errors import InputError, SearchQueryError
from headwater.search.compiling import Compiler
from headwater.search.language import Ignored, parse, parse_leniently
from headwater.search.reader import Reader

__all__ = ["Request", "compile_query", "field_number"]

_MOST_KEPT, _MOST_LETTERS, _MOST_TERMS = 256, 1_000, 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked; see `SearchIndex.search`."""

    query: str
    columns: Sequence[str] | None = None
    k: int | None = 10
    offset: int = 0
    order_by: str | None = None
    descending: bool = False
    where: str | None = None
    fields: Sequence[str] | None = None
    default: Literal["or", "and"] = "or"
    lenient: bool = False
    vector: Any = None
    vector_column: str | None = None
    fuse: Literal["rrf"] = "rrf"
    absent: bool = False
    """Whether a field that the index does not have matches nothing, instead of being an error."""

    def __post_init__(self) -> None:
        if not isinstance(self.query, str):
            raise InputError.bad_argument("query", self.query, "text in the language of searches")
        if self.k is not None and (not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 0):
            raise InputError.bad_argument("k", self.k, "a number of rows, or None for all")
        if not isinstance(self.offset, int) or isinstance(self.offset, bool) or self.offset < 0:
            raise InputError.bad_argument("offset", self.offset, "a number of rows to skip")
        if self.default not in ("or", "and"):
            raise InputError.bad_argument("default", self.default, '"or" or "and"')
        if self.fuse != "rrf":
            raise InputError.bad_argument("fuse", self.fuse, '"rrf"')

    @property
    def question(self) -> tuple[Hashable, ...]:
        """What decides which rows are found, of a request without a condition and without a vector."""
        fields = None if self.fields is None else tuple(self.fields)
        order = (self.order_by, self.descending)
        return self.query, self.k, self.offset, order, fields, self.default, self.lenient, self.absent


def compile_query(reader: Reader, asked: Request) -> tuple[Any, tuple[Ignored, ...]]:
    """The library's query for a question's text, and what was left out of it.

    The reader keeps those of the last short questions, as databases keep prepared statements. It is of one version, so
    what the text means there does not change.
    """
    fields = None if asked.fields is None else tuple(asked.fields)
    key = asked.query, fields, asked.default, asked.lenient, asked.absent
    found: tuple[Any, tuple[Ignored, ...]] | None = reader.compiled.get(key)
    if found is None:
        found, terms = _compiled(reader, asked)
        if len(asked.query) <= _MOST_LETTERS and terms <= _MOST_TERMS:
            reader.compiled[key] = found
            with suppress(KeyError):  # another thread was quicker
                while len(reader.compiled) > _MOST_KEPT:
                    reader.compiled.popitem(last=False)
    return found


def _compiled(reader: Reader, asked: Request) -> tuple[tuple[Any, tuple[Ignored, ...]], int]:
    """What `compile_query` gives, and how many terms were looked up for it."""
    defaults = [field_number(reader, c) for c in asked.fields or ()]
    compiler = Compiler(reader, defaults, asked.lenient, asked.absent)
    if asked.lenient:
        node, ignored = parse_leniently(asked.query, default=asked.default)
        query = compiler.compile(node)
        return (query, (*ignored, *compiler.ignored)), compiler.looked_up
    return (compiler.compile(parse(asked.query, default=asked.default)), ()), compiler.looked_up


def field_number(reader: Reader, column: str) -> int:
    number = reader.meant.fields.number(column)
    if number is None:
        raise SearchQueryError.not_indexed(column, reader.meant.fields.columns)
    return number
