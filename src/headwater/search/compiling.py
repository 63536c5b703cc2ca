"""Compiling: from the tree of a query to the library's query, over the fields of one index.

Leaves are read by the kind of their field. Words and phrases go through the field's analyzer, as the rows did. Terms of
text and their combinations have scores; patterns, ranges and sets match without one, as in the library. A negation has
no rows of its own there, so one that stands alone is taken out of all rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from headwater.base.errors import SearchQueryError
from headwater.search.analyzers import Analyzer
from headwater.search.fields import NULLS, PATHS, Field, path_term
from headwater.search.language import (
    ANY,
    ONE,
    And,
    Boost,
    Everything,
    Exists,
    Fuzzy,
    Ignored,
    Node,
    Not,
    Occurs,
    OneOf,
    Or,
    Pattern,
    Phrase,
    Range,
    Regex,
    Term,
    Wildcard,
    split_path,
)  # fmt: skip
from headwater.search.native import MOST_FUZZY, fuzzy_size, guarded, one_of
from headwater.search.patterns import matching, pattern_regex
from headwater.search.reader import Reader
from headwater.search.values import read_value

__all__ = ["Compiler"]

_MANY_TERMS = 20_000
_LONGEST_REGEX = 2_000
_TYPES = {
    "integer": "Integer", "date": "Integer", "timestamp": "Integer", "float": "Float", "boolean": "Boolean",
    "ip": "IpAddr", "binary": "Bytes",
}  # fmt: skip


@dataclass
class Compiler:
    """Compiles queries for one reader.

    Parameters
    ----------
    reader : Reader
        whose fields and terms are meant
    defaults : sequence of int, optional
        the numbers of the fields that words are searched in where none is named
    lenient : bool
        leave out what names no field or no value, and note it in ``ignored``
    absent : bool
        a field that the index does not have matches nothing
    """

    reader: Reader
    defaults: Sequence[int] = ()
    lenient: bool = False
    absent: bool = False
    ignored: list[Ignored] = field(default_factory=list)
    looked_up: int = 0
    """How many terms the lists of terms gave, for patterns and ranges."""
    fuzzy: int = 0
    """The size of the fuzzy words so far."""

    def __post_init__(self) -> None:
        import tantivy

        self._library = tantivy
        self._make = tantivy.Query
        self._fields = self.reader.meant.fields
        self.defaults = list(self.defaults) or self._fields.text

    def compile(self, node: Node) -> Any:
        """The library's query for a tree."""
        with guarded("reading the query"):
            return self._positive(node)

    # -- combinations ----------------------------------------------------------------------------------------------

    def _positive(self, node: Node) -> Any:
        match node:
            case And(children):
                return self._boolean(must=children)
            case Or(children):
                return self._boolean(should=children)
            case Not(child):
                return self._boolean(must_not=(child,))
            case Occurs(must, should, must_not):
                return self._boolean(must, should, must_not)
            case Boost(child, factor):
                return self._make.boost_query(self._positive(child), factor)
            case Everything():
                return self._make.all_query()
            case _:
                return self._leaf(node)

    def _boolean(self, must: Sequence[Node] = (), should: Sequence[Node] = (), must_not: Sequence[Node] = ()) -> Any:
        occur = self._library.Occur
        clauses: list[tuple[Any, Any]] = []
        for child in must:
            if isinstance(child, Not):
                clauses.append((occur.MustNot, self._positive(child.child)))
            else:
                clauses.append((occur.Must, self._positive(child)))
        clauses += [(occur.Should, self._positive(child)) for child in should]
        clauses += [(occur.MustNot, self._positive(child)) for child in must_not]
        if not any(kind == occur.Must for kind, _ in clauses) and (must or not should):  # then nothing else need match
            clauses.append((occur.Must, self._make.const_score_query(self._make.all_query(), 0.0)))
        return self._make.boolean_query(clauses)

    def _any(self, queries: Sequence[Any]) -> Any:
        if len(queries) == 1:
            return queries[0]
        return self._make.boolean_query([(self._library.Occur.Should, one) for one in queries])

    def _all(self, queries: Sequence[Any]) -> Any:
        if len(queries) == 1:
            return queries[0]
        return self._make.boolean_query([(self._library.Occur.Must, one) for one in queries])

    # -- leaves ----------------------------------------------------------------------------------------------------

    def _leaf(self, node: Any) -> Any:
        try:
            if node.field is None:
                return self._any([self._of_field(node, n, ()) for n in self.defaults])
            number, inside = self._named(node.field)
            return self._of_field(node, number, inside)
        except SearchQueryError as e:
            if self.absent and e.code == "E1807":
                return self._make.empty_query()
            if not self.lenient:
                raise
            self.ignored.append(Ignored(node.at, node.field or "", e.message))
            return self._make.empty_query()

    def _named(self, path: str) -> tuple[int, tuple[str, ...]]:
        """The field that a path names, and the path inside it."""
        names = split_path(path)
        for length in range(len(names), 0, -1):
            number = self._fields.number(".".join(names[:length]))
            if number is None:
                continue
            rest = names[length:]
            if rest and self._fields[number].kind != "json":
                continue
            return number, tuple(rest)
        raise SearchQueryError.not_indexed(".".join(names), self._fields.columns)

    def _of_field(self, node: Any, number: int, inside: tuple[str, ...]) -> Any:
        f, name = self._fields[number], self._fields.name(number)
        name += "".join("." + one.replace("\\", "\\\\").replace(".", "\\.") for one in inside)
        if f.kind == "json" and not inside and not isinstance(node, Exists):
            name += "._"  # where arrays and scalars are
        match node:
            case Exists():
                return self._exists_inside(number, inside) if inside else self._exists(number)
            case Term(text=text):
                return self._words(f, name, text, 0) if f.kind in ("text", "json") else self._value(f, name, text)
            case Phrase(text=text, slop=slop, prefix=prefix):
                if f.kind not in ("text", "json"):
                    return self._value(f, name, text) if not prefix else self._pattern(f, number, name, (text, ANY))
                return self._words(f, name, text, slop, phrase=True, prefix=prefix)
            case Wildcard(pattern=pattern):
                return self._pattern(f, number, name, pattern)
            case Fuzzy(text=text, distance=distance, prefix=prefix):
                self._need_terms(f, "a fuzzy word")
                words = f.analysis.terms(text) if f.kind != "keyword" else [text]
                self._need_room(f, words)
                return self._all(
                    [self._make.fuzzy_term_query(self.reader.schema, name, w, distance, True, prefix) for w in words]
                ) if words else self._make.empty_query()  # fmt: skip
            case Regex(pattern=text):
                self._need_terms(f, "a regular expression", patterns=True)
                if len(text) > _LONGEST_REGEX:  # the library compiles it first, and then sees that it is too large
                    raise SearchQueryError.refused("reading a regular expression", f"{len(text):,} characters are many")
                return self._make.regex_query(self.reader.schema, name, text)
            case Range():
                return self._range(f, name, node)
            case OneOf(values=values):
                return self._any([self._of_field(Term(node.field, v, at=node.at), number, inside) for v in values if v])
        raise AssertionError(f"a leaf that is not known: {node!r}")

    def _exists(self, number: int) -> Any:
        missing = self._make.term_query(self.reader.schema, NULLS, str(number), "basic")
        return self._without(missing)

    def _exists_inside(self, number: int, inside: Sequence[str]) -> Any:
        term = reduce(path_term, inside, str(number))
        return self._make.const_score_query(self._make.term_query(self.reader.schema, PATHS, term, "basic"), 1.0)

    def _without(self, query: Any) -> Any:
        occur = self._library.Occur
        every = self._make.const_score_query(self._make.all_query(), 1.0)
        return self._make.boolean_query([(occur.Must, every), (occur.MustNot, query)])

    def _words(self, f: Field, name: str, text: str, slop: int, *, phrase: bool = False, prefix: bool = False) -> Any:
        schema, terms = self.reader.schema, _placed(f.analysis, text)
        if f.kind == "json":
            typed = [t for t in (_number(text), _moment(text)) if t is not None]
            alternatives = [self._make.term_query(schema, name, t) for t in typed]
            if terms:
                alternatives.append(self._sequence(f, name, terms, slop, prefix=prefix))
            return self._any(alternatives) if alternatives else self._make.empty_query()
        if not terms:
            return self._make.empty_query()
        del phrase
        return self._sequence(f, name, terms, slop, prefix=prefix)

    def _sequence(self, f: Field, name: str, terms: list[tuple[int, str]], slop: int, *, prefix: bool) -> Any:
        schema = self.reader.schema
        words = [word for _, word in terms]
        if len(terms) == 1:
            if prefix:
                self._need_terms(f, "a prefix", patterns=True)
                return self._make.regex_query(schema, name, pattern_regex((words[0], ANY)))
            return self._make.term_query(schema, name, words[0], f.record)
        if f.record != "position":
            raise SearchQueryError.not_possible(
                "a phrase", f.column, "it is indexed without positions", "define the index with positions"
            )
        if prefix:
            self._need_terms(f, "a phrase with a prefix", patterns=True)
            exact = [(at, pattern_regex((word,))) for at, word in terms[:-1]]
            last = (terms[-1][0], pattern_regex((words[-1], ANY)))  # a query for prefixes would stop at 50 of them
            return self._make.regex_phrase_query(schema, name, [*exact, last], slop)
        placed: list[str | tuple[int, str]] = [*words] if f.kind == "json" else [*terms]
        return self._make.phrase_query(schema, name, placed, slop)

    def _value(self, f: Field, name: str, text: str) -> Any:
        schema = self.reader.schema
        if f.kind == "keyword":
            return self._make.term_query(schema, name, text, "basic")
        if f.kind == "ip" and "/" in text:
            import ipaddress

            try:
                net = ipaddress.ip_network(text.strip(), strict=False)
            except ValueError:
                raise SearchQueryError.bad_value(
                    f.column, "of kind ip", text, "a network, such as 10.0.0.0/8"
                ) from None
            kind = self._library.FieldType.IpAddr
            return self._make.range_query(schema, name, kind, str(net[0]), str(net[-1]))
        return self._make.term_query(schema, name, read_value(f, text))

    def _need_room(self, f: Field, words: Sequence[str]) -> None:
        self.fuzzy += sum(map(fuzzy_size, words))
        if self.fuzzy > MOST_FUZZY:
            hint = "search for fewer or shorter words, for a prefix, or in fewer fields"
            raise SearchQueryError.not_possible("a fuzzy word", f.column, "those of the query are too long", hint)

    def _need_terms(self, f: Field, what: str, *, patterns: bool = False) -> None:
        if f.kind == "json" and patterns:
            hint = "search for words, values and ranges, or index the value as a column of its own"
            raise SearchQueryError.not_possible(what, f.column, "it is of kind json", hint)
        if f.kind not in ("text", "keyword", "json"):
            raise SearchQueryError.not_possible(what, f.column, f"it is of kind {f.kind}", "use a range, or a value")

    def _pattern(self, f: Field, number: int, name: str, pattern: Pattern) -> Any:
        self._need_terms(f, "a pattern", patterns=True)
        folded = tuple(_folded(f.analysis, part) if isinstance(part, str) else part for part in pattern)
        if f.kind == "text" and (several := _pieces(f.analysis, folded)) is not None:
            return self._all([self._pattern_terms(number, name, piece) for piece in several])
        return self._pattern_terms(number, name, folded)

    def _pattern_terms(self, number: int, name: str, pattern: Pattern) -> Any:
        schema = self.reader.schema
        if not any(part is ANY or part is ONE for part in pattern):
            return self._make.term_query(schema, name, "".join(map(str, pattern)), "basic")
        terms = self.reader.terms.get(self._fields.name(number), ())
        found = matching(terms, pattern, grams=self._fields[number].substring)
        self.looked_up += len(found)
        if len(found) > _MANY_TERMS:
            return self._make.regex_query(schema, name, pattern_regex(pattern))
        return one_of(schema, name, found)

    def _range(self, f: Field, name: str, node: Range) -> Any:
        schema = self.reader.schema
        if f.kind == "json":
            return self._json_range(f, name, node)
        if f.is_text:
            return self._term_range(f, name, node)
        lower, upper = (None if end is None else read_value(f, end) for end in (node.lower, node.upper))
        kind = getattr(self._library.FieldType, _TYPES[f.kind])
        if f.is_numeric and lower is not None and upper is not None and lower > upper:
            return self._make.empty_query()
        return self._make.range_query(
            schema, name, kind, lower, upper, lower is None or node.include_lower, upper is None or node.include_upper
        )

    def _term_range(self, f: Field, name: str, node: Range) -> Any:
        """A range of terms in the order of their bytes, by the lists of terms."""
        number = int(name[1:])
        found = {
            term
            for terms in self.reader.terms.get(self._fields.name(number), ())
            for term in terms.to_pylist()
            if _between(term, node, f)
        }
        self.looked_up += len(found)
        return one_of(self.reader.schema, name, found)

    def _json_range(self, f: Field, name: str, node: Range) -> Any:
        """A range inside JSON, by the library's own parser, which knows the types of the values.

        Each end is a query of its own, since it cannot have ends of two types; an array may so have a value for each.
        """
        parts = []
        for one, sign in ((node.lower, ">="[: 1 + node.include_lower]), (node.upper, "<="[: 1 + node.include_upper])):
            if one is None:
                continue
            number = _number(one)
            if isinstance(number, bool) or (number is None and not re.fullmatch(r"[\w.:-]+", one)):
                hint = "write numbers, or words of letters and digits"
                raise SearchQueryError.not_possible("this range", f.column, "it is of kind json", hint)
            shown = one if number is not None else _folded(f.analysis, one)
            parts.append(self.reader.index.parse_query(f"{name}:{sign}{shown}", []))
        return self._all(parts)


def _between(term: str, node: Range, f: Field) -> bool:
    lower = None if node.lower is None else _folded(f.analysis, node.lower)
    upper = None if node.upper is None else _folded(f.analysis, node.upper)
    if lower is not None and (term < lower or (term == lower and not node.include_lower)):
        return False
    return upper is None or term < upper or (term == upper and node.include_upper)


def _folded(analyzer: Analyzer, text: str) -> str:
    """A piece of a word as the filters of an analyzer leave it, but for those that look at whole words."""
    steps = {name for name, _ in analyzer.steps}
    if "lowercase" in steps:
        text = "".join(c.lower() for c in text)
    if "ascii_fold" in steps:
        text = Analyzer((("raw", ()), ("ascii_fold", ()))).terms(text)[0] if text else text
    return text


def _pieces(analyzer: Analyzer, pattern: Pattern) -> list[Pattern] | None:
    """A pattern that crosses borders of terms (``hello*,*world``, ``a\\ b*``) as one pattern per term;
    None if it does not.
    """
    if analyzer.steps[0][0] not in ("simple", "whitespace"):
        return None
    pieces: list[list[Any]] = [[]]
    for part in pattern:
        if not isinstance(part, str):
            pieces[-1].append(part)
            continue
        chunk = ""
        for c in part:
            if c.isspace() or (analyzer.steps[0][0] == "simple" and not c.isalnum() and not analyzer.terms(c)):
                if chunk:
                    pieces[-1].append(chunk)
                chunk = ""
                pieces.append([])
            else:
                chunk += c
        if chunk:
            pieces[-1].append(chunk)
    several = [tuple(one) for one in pieces if one and one != [ANY]]
    return several if len(pieces) > 1 and several else None


def _placed(analyzer: Analyzer, text: str) -> list[tuple[int, str]]:
    """The terms of a text, each with its position: where a word was left out, there is a gap."""
    return [(token.position, token.text) for token in analyzer.build().pre_tokenize(text).tokens]


def _number(text: str) -> int | float | bool | None:
    """A number or a truth value that a JSON value may be."""
    if text in ("true", "false"):
        return text == "true"
    with suppress(ValueError):
        value = int(text)
        if -(2**63) <= value < 2**64:
            return value
    with suppress(ValueError):
        number = float(text)
        if math.isfinite(number):
            return number
    return None


def _moment(text: str) -> datetime | None:
    """A timestamp that a JSON value may be: the library takes strings that are one for timestamps."""
    with suppress(ValueError):
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo is not None and "T" in text.upper() else None
    return None
