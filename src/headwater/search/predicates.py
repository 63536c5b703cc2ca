"""Standard predicates: which rows may meet a condition of SQL, by the index.

``contains``, ``LIKE``, ``=`` and the rest keep the meaning that they have in Spark, character by character. The index
gives candidates, never an answer: a query that matches every row for which the condition is true, and perhaps others,
which are then read and verified. So a part of the condition that the index cannot help with is left out of the query,
and where nothing is left (None), the table is scanned.

Why candidates are complete, for text whose analyzer is char-wise (`analyzers`): a row that contains a needle contains
each of the needle's terms, except that the first may be the end of a longer term, and the last the beginning of one. A
needle without a letter or digit gives nothing to look for. Terms are in lower case, so that they are too many rather
than too few. Values with terms that the library leaves out are marked when they are indexed (``_o``), and are always
among the candidates. Numbers are compared after rounding them to what the index has; rounding keeps the order, so
bounds are taken to be included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from headwater.search.analyzers import parse_analyzer
from headwater.search.fields import NULLS, ODD, Field
from headwater.search.language import ANY, Pattern
from headwater.search.native import one_of
from headwater.search.patterns import matching
from headwater.search.reader import Reader
from headwater.search.values import days_of, microseconds_of
from headwater.sql.conjuncts import plain_column
from headwater.sql.nodes import Call, Column, Literal, Node

__all__ = ["candidates"]

_MIRRORED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MANY_TERMS = 10_000
_LEAST, _MOST = -(2**63), 2**63 - 1


def candidates(reader: Reader, node: Node) -> Any | None:
    """A query whose rows include all for which a condition is true; None if that would be every row."""
    return _Finding(reader).of(node)


class _Finding:
    def __init__(self, reader: Reader) -> None:
        import tantivy

        self.reader, self.fields, self.schema = reader, reader.meant.fields, reader.schema
        self.make, self.occur = tantivy.Query, tantivy.Occur
        self.types = tantivy.FieldType

    def of(self, node: Node) -> Any | None:
        if isinstance(node, Column):
            return self._truth(node, wanted=True)
        if not isinstance(node, Call):
            return None
        if node.op == "and":
            found = [one for one in map(self.of, node.args) if one is not None]
            return self._all(found) if found else None
        if node.op == "or":
            parts = [self.of(one) for one in node.args]
            return None if any(one is None for one in parts) else self._any(parts)
        if node.op == "not":
            inner = node.args[0]
            return self._truth(inner, wanted=False) if isinstance(inner, Column) else None
        return self._comparison(node)

    # -- parts -----------------------------------------------------------------------------------------------------

    def _comparison(self, node: Call) -> Any | None:
        op, args = node.op, node.args
        if op in _MIRRORED and isinstance(args[0], Literal):
            op, args = _MIRRORED[op], (args[1], args[0])
        column, lowered = _column(args[0]) if args else (None, False)
        if column is None:
            return None
        number = self.fields.number(column)
        if number is None:
            return None
        f = self.fields[number]
        if op in ("is null", "is not null"):
            return self._null(f, number, wanted=op == "is null")
        constants = args[1:]
        if not constants or not all(isinstance(one, Literal) for one in constants):
            return None
        values = [one.value for one in constants if isinstance(one, Literal)]
        if any(value is None for value in (values[:1] if op == "like" else values)):
            return None
        if f.is_text and all(isinstance(value, str) for value in values):
            return self._text(f, number, op, [str(value) for value in values], lowered=lowered)
        if lowered:
            return None
        if f.kind == "binary":
            return self._binary(f, number, op, values)
        return self._numeric(f, number, op, values)

    def _truth(self, node: Column, *, wanted: bool) -> Any | None:
        number = self.fields.number(node.path[0]) if len(node.path) == 1 else None
        if number is None or self.fields[number].kind != "boolean":
            return None
        return self.make.term_query(self.schema, self.fields.name(number), wanted)

    def _null(self, f: Field, number: int, *, wanted: bool) -> Any | None:
        null = self.make.term_query(self.schema, NULLS, str(number), "basic")
        if wanted:
            return null
        if f.kind in ("ip", "json"):  # what is no address, or no JSON, is not null
            return None
        return self.make.boolean_query([(self.occur.Must, self.make.all_query()), (self.occur.MustNot, null)])

    def _binary(self, f: Field, number: int, op: str, values: Sequence[Any]) -> Any | None:
        if op not in ("=", "<=>", "in") or not all(isinstance(value, bytes) for value in values):
            return None
        name = self.fields.name(number)
        return self._or_odd(number, self._any([self.make.term_query(self.schema, name, v) for v in values]))

    # -- text ------------------------------------------------------------------------------------------------------

    def _text(self, f: Field, number: int, op: str, values: list[str], *, lowered: bool) -> Any | None:
        if lowered and not all(value.isascii() for value in values):  # Java lowers some letters by their neighbours
            return None
        if op in ("=", "<=>", "in"):
            parts = [self._whole(f, number, value, lowered=lowered) for value in values]
            return None if any(one is None for one in parts) else self._any(parts)
        if op in ("<", "<=", ">", ">="):
            return None if lowered else self._between(f, number, op, values[0])
        pieces = {
            "contains": [(values[0], True, True)],
            "startswith": [(values[0], False, True)],
            "endswith": [(values[0], True, False)],
        }.get(op)
        if op == "like":
            pieces = _like_pieces(values[0], values[1] if len(values) > 1 else "\\")
        if pieces is None:
            return None
        found = [self._piece(f, number, *piece, lowered=lowered) for piece in pieces if piece[0]]
        helpful = [one for one in found if one is not None]
        return self._all(helpful) if helpful else None

    def _whole(self, f: Field, number: int, value: str, *, lowered: bool) -> Any | None:
        if f.kind == "keyword" and not lowered:
            return self._or_odd(number, self.make.term_query(self.schema, self.fields.name(number), value, "basic"))
        return self._piece(f, number, value, False, False, lowered=lowered)

    def _piece(
        self, f: Field, number: int, needle: str, open_left: bool, open_right: bool, *, lowered: bool
    ) -> Any | None:
        """Rows whose value has a needle in it, anywhere or at an end."""
        if f.substring:
            # İ is lowered to an i and a dot: an i at the end may be half of a character that was indexed as a whole
            safe = needle[:-1] if lowered and needle.endswith(("i", "I")) else needle
            grams = parse_analyzer("trigram").terms(safe)
            if grams:
                name = self.fields.trigrams(number)
                return self._all([self.make.term_query(self.schema, name, g, "basic") for g in dict.fromkeys(grams)])
        if f.kind == "keyword":
            if lowered:
                return None
            return self._like_terms(number, ((ANY,) if open_left else ()) + (needle,) + ((ANY,) if open_right else ()))
        analyzer = f.analysis
        if not analyzer.is_char_wise or (lowered and not analyzer.lowers):
            return None
        tokens = analyzer.build().pre_tokenize(needle).tokens
        if not tokens:
            return None
        found = []
        for token in tokens:
            left = open_left and token.char_offset_from == 0
            right = open_right and token.char_offset_to == len(needle)
            found.append(self._like_terms(number, (ANY,) * left + (token.text,) + (ANY,) * right))
        helpful = [one for one in found if one is not None]
        return self._all(helpful) if helpful else None

    def _like_terms(self, number: int, pattern: Pattern) -> Any | None:
        name = self.fields.name(number)
        if len(pattern) == 1:
            return self._or_odd(number, self.make.term_query(self.schema, name, str(pattern[0]), "basic"))
        terms = matching(self.reader.terms.get(name, ()), pattern)
        return self._one_of(number, terms)

    def _between(self, f: Field, number: int, op: str, value: str) -> Any | None:
        if f.kind != "keyword":
            return None
        lists = self.reader.terms.get(self.fields.name(number), ())
        meets = {"<": str.__lt__, "<=": str.__le__, ">": str.__gt__, ">=": str.__ge__}[op]
        return self._one_of(number, {term for terms in lists for term in terms.to_pylist() if meets(term, value)})

    def _one_of(self, number: int, terms: set[str]) -> Any | None:
        if len(terms) > _MANY_TERMS:
            return None
        return self._or_odd(number, one_of(self.schema, self.fields.name(number), terms))

    def _or_odd(self, number: int, query: Any) -> Any:
        """The same, and the rows whose values have terms that are not in the index."""
        return self._any([query, self.make.term_query(self.schema, ODD, str(number), "basic")])

    # -- numbers ---------------------------------------------------------------------------------------------------

    def _numeric(self, f: Field, number: int, op: str, values: Sequence[Any]) -> Any | None:
        if not f.is_numeric:
            return None
        name = self.fields.name(number)
        if f.kind == "boolean":
            if op not in ("=", "<=>", "in") or not all(isinstance(value, bool) for value in values):
                return None
            return self._any([self.make.term_query(self.schema, name, value) for value in values])
        bounds = [_bounds(f, value) for value in values]
        if any(one is None for one in bounds):
            return None
        known = [one for one in bounds if one is not None]
        kind = self.types.Float if f.kind == "float" else self.types.Integer
        if op in ("=", "<=>", "in"):
            return self._any([self.make.range_query(self.schema, name, kind, low, high) for low, high in known])
        low, high = known[0]
        if op in (">", ">="):
            return self.make.range_query(self.schema, name, kind, low, None)
        if op in ("<", "<="):
            return self.make.range_query(self.schema, name, kind, None, high)
        return None

    def _all(self, queries: Sequence[Any]) -> Any:
        return queries[0] if len(queries) == 1 else self.make.boolean_query([(self.occur.Must, q) for q in queries])

    def _any(self, queries: Sequence[Any]) -> Any:
        return queries[0] if len(queries) == 1 else self.make.boolean_query([(self.occur.Should, q) for q in queries])


def _column(node: Node) -> tuple[str | None, bool]:
    """The column that a side of a comparison is, and whether it is lowered."""
    if isinstance(node, Call) and node.op == "lower" and isinstance(node.args[0], Column):
        inner = node.args[0]
        return (inner.path[0], True) if len(inner.path) == 1 else (None, False)
    found = plain_column(node)
    return (None, False) if found is None else (found.path[0], False)


def _bounds(f: Field, value: Any) -> tuple[Any, Any] | None:
    """What a constant may be in the index: the whole numbers around it, or the nearest float."""
    if f.kind == "date":
        return (days_of(value),) * 2 if isinstance(value, date) and not isinstance(value, datetime) else None
    if f.kind == "timestamp":
        return (microseconds_of(value),) * 2 if isinstance(value, datetime) else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if f.kind == "float":
        try:
            nearest = float(value) + 0.0
        except OverflowError:
            return None
        return nearest, nearest
    low, high = math.floor(value), math.ceil(value)
    return min(max(low, _LEAST), _MOST), min(max(high, _LEAST), _MOST)


def _like_pieces(pattern: str, escape: str) -> list[tuple[str, bool, bool]] | None:
    """The literal pieces of a LIKE pattern, and whether something may come before and after each."""
    pieces: list[tuple[str, bool, bool]] = []
    piece, opened, at = "", False, 0
    while at < len(pattern):
        c = pattern[at]
        if c == escape and escape:
            at += 1
            if at == len(pattern):
                return None
            piece += pattern[at]
        elif c in "%_":
            pieces.append((piece, opened, True))
            piece, opened = "", True
        else:
            piece += c
        at += 1
    pieces.append((piece, opened, False))
    return pieces
