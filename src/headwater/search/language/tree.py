"""The tree of a search query: what was asked, without any idea of an index.

Leaves name a field by its path (see `path`), or None for the default fields of the index, and hold the offset at which
they begin in the query, so that whoever compiles the tree can point there. The offset does not take part in
comparisons: two trees are equal if they ask the same.

Invariants, which `__post_init__` states: `And` and `Or` have two children at least; `Occurs` has two clauses at least,
one of which is a must or a must-not (else it would be an `Or`); a pattern has a marker, its literals are as long as
they can be, and it is not the single marker `ANY`, which is `Exists` or `Everything`; a `Range` has one end at least,
and an end that is open is not included.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from headwater.search.language.path import is_path

__all__ = [
    "ANY",
    "MAX_BOOST",
    "MAX_DISTANCE",
    "ONE",
    "And",
    "Boost",
    "Everything",
    "Exists",
    "Fuzzy",
    "Leaf",
    "Marker",
    "Node",
    "Not",
    "Occurs",
    "OneOf",
    "Or",
    "Pattern",
    "Phrase",
    "Range",
    "Regex",
    "Term",
    "Wildcard",
    "children",
    "leaves",
    "walk",
]

MAX_DISTANCE = 2
MAX_BOOST = 1_000_000.0


class Marker(enum.Enum):
    """A place in a pattern that stands for other characters."""

    ANY = "*"
    ONE = "?"

    def __repr__(self) -> str:
        return self.name


ANY, ONE = Marker.ANY, Marker.ONE
Pattern = tuple[str | Marker, ...]
# In a regular expression: an escaped character, or a backslash that escapes nothing.
_ESCAPE = re.compile(r"\\(.?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Placed:
    at: int = dataclasses.field(default=0, compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class _Fielded(_Placed):
    field: str | None

    def __post_init__(self) -> None:
        assert self.field is None or is_path(self.field), f"{self.field!r} is no path"


@dataclass(frozen=True, slots=True)
class Term(_Fielded):
    """A word, which the analyzer of the field has not seen yet."""

    text: str

    def __post_init__(self) -> None:
        _Fielded.__post_init__(self)
        assert self.text


@dataclass(frozen=True, slots=True)
class Phrase(_Fielded):
    """Words in this order, with at most `slop` moves; with `prefix`, the last one may go on."""

    text: str
    slop: int = 0
    prefix: bool = False

    def __post_init__(self) -> None:
        _Fielded.__post_init__(self)
        assert self.slop >= 0


@dataclass(frozen=True, slots=True)
class Wildcard(_Fielded):
    """A word of this pattern: literals, and the markers ANY and ONE."""

    pattern: Pattern

    def __post_init__(self) -> None:
        _Fielded.__post_init__(self)
        assert self.pattern != (ANY,) and "" not in self.pattern
        assert any(isinstance(part, Marker) for part in self.pattern)
        for one, two in pairwise(self.pattern):
            assert not (one is two is ANY) and not (isinstance(one, str) and isinstance(two, str))


@dataclass(frozen=True, slots=True)
class Fuzzy(_Fielded):
    """A word at most `distance` edits away; with `prefix`, one that begins so."""

    text: str
    distance: int = MAX_DISTANCE
    prefix: bool = False

    def __post_init__(self) -> None:
        _Fielded.__post_init__(self)
        assert self.text and 0 <= self.distance <= MAX_DISTANCE


@dataclass(frozen=True, slots=True)
class Regex(_Fielded):
    """A word that this regular expression matches as a whole."""

    pattern: str

    def __post_init__(self) -> None:
        _Fielded.__post_init__(self)
        assert self.pattern and not {"", "/"} & set(_ESCAPE.findall(self.pattern)), "a slash is written as it is"


@dataclass(frozen=True, slots=True)
class Range(_Fielded):
    """Values between two ends; an end that is None is open."""

    lower: str | None
    upper: str | None
    include_lower: bool
    include_upper: bool

    def __post_init__(self) -> None:
        _Fielded.__post_init__(self)
        assert self.lower is not None or self.upper is not None
        assert not (self.lower is None and self.include_lower) and not (self.upper is None and self.include_upper)


@dataclass(frozen=True, slots=True)
class OneOf(_Fielded):
    """One of these values."""

    values: tuple[str, ...]

    def __post_init__(self) -> None:
        _Fielded.__post_init__(self)
        assert self.values


@dataclass(frozen=True, slots=True)
class Exists(_Placed):
    """The field has a value."""

    field: str

    def __post_init__(self) -> None:
        assert is_path(self.field)


@dataclass(frozen=True, slots=True)
class Everything(_Placed):
    """Every row."""


@dataclass(frozen=True, slots=True)
class And:
    """All of the children."""

    children: tuple[Node, ...]

    def __post_init__(self) -> None:
        assert len(self.children) > 1


@dataclass(frozen=True, slots=True)
class Or:
    """One of the children at least."""

    children: tuple[Node, ...]

    def __post_init__(self) -> None:
        assert len(self.children) > 1


@dataclass(frozen=True, slots=True)
class Not:
    """Rows that the child does not match; alone, out of all rows."""

    child: Node


@dataclass(frozen=True, slots=True)
class Boost:
    """The child, with its score multiplied."""

    child: Node
    factor: float

    def __post_init__(self) -> None:
        assert 0 <= self.factor <= MAX_BOOST


@dataclass(frozen=True, slots=True)
class Occurs:
    """Lucene's row of clauses: all of `must`, none of `must_not`; one of `should` if there is no `must`, else for the
    score.

    With `must_not` alone, it is every row but those.
    """

    must: tuple[Node, ...] = ()
    should: tuple[Node, ...] = ()
    must_not: tuple[Node, ...] = ()

    def __post_init__(self) -> None:
        assert len(self.must) + len(self.should) + len(self.must_not) > 1 and (self.must or self.must_not)


Leaf = Term | Phrase | Wildcard | Fuzzy | Regex | Range | OneOf | Exists | Everything
Node = Leaf | And | Or | Not | Boost | Occurs


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below this one, in the order in which they are written."""
    match node:
        case And() | Or():
            return node.children
        case Not() | Boost():
            return (node.child,)
        case Occurs():
            return (*node.must, *node.should, *node.must_not)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, a parent before its children."""
    waiting: list[Node] = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(children(one)))


def leaves(node: Node) -> Iterator[Leaf]:
    """The leaves, in the order in which they are written."""
    for one in walk(node):
        if not isinstance(one, And | Or | Not | Boost | Occurs):
            yield one
