"""Row patterns as written: the tree between PATTERN ( and its closing parenthesis.

A row pattern is a regular expression over rows: its letters are variables, each with a condition. The tree holds what
was written and knows nothing of rows; `automaton` makes a machine of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "Alternation",
    "Anchor",
    "Concatenation",
    "Exclusion",
    "Pattern",
    "Permutation",
    "Quantified",
    "Variable",
    "parts_of_pattern",
    "spelled",
    "variables_of",
]


@dataclass(frozen=True, slots=True)
class Variable:
    """A row for which the condition of this name is true."""

    name: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """``^`` or ``$``: no row, but the start or the end of the partition."""

    end: bool


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One part behind the other; without parts it is the empty pattern ``()``."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of the parts; an earlier one is preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Permutation:
    """All parts, in any order; of the orders, the first in the order of a dictionary is preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Quantified:
    """The part ``least`` to ``most`` times (None: any number), as often as possible, or as seldom if ``reluctant``."""

    part: Pattern
    least: int
    most: int | None
    reluctant: bool = False


@dataclass(frozen=True, slots=True)
class Exclusion:
    """``{- part -}``: its rows belong to the match, and ALL ROWS PER MATCH leaves them out."""

    part: Pattern


Pattern: TypeAlias = Variable | Anchor | Concatenation | Alternation | Permutation | Quantified | Exclusion

_SHORT = {(0, None): "*", (1, None): "+", (0, 1): "?"}


def parts_of_pattern(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns directly below."""
    if isinstance(pattern, Concatenation | Alternation | Permutation):
        return pattern.parts
    return (pattern.part,) if isinstance(pattern, Quantified | Exclusion) else ()


def variables_of(pattern: Pattern) -> Iterator[str]:
    """The names of the variables, as often as they are written, from left to right.

    >>> list(variables_of(Concatenation((Variable("A"), Quantified(Variable("B"), 1, None)))))
    ['A', 'B']
    """
    if isinstance(pattern, Variable):
        yield pattern.name
    for part in parts_of_pattern(pattern):
        yield from variables_of(part)


def spelled(pattern: Pattern) -> str:
    """The pattern as text.

    >>> spelled(Concatenation((Variable("A"), Quantified(Alternation((Variable("B"), Variable("C"))), 2, 3, True))))
    'A (B | C){2,3}?'
    """
    if isinstance(pattern, Variable):
        plain = re.fullmatch(r"[^\W\d]\w*", pattern.name) and pattern.name.upper() != "PERMUTE"
        return pattern.name if plain else "`" + pattern.name.replace("`", "``") + "`"
    if isinstance(pattern, Anchor):
        return "$" if pattern.end else "^"
    if isinstance(pattern, Concatenation):
        return " ".join(_inside(p, Alternation) for p in pattern.parts) or "()"
    if isinstance(pattern, Alternation):
        return " | ".join(map(spelled, pattern.parts))
    if isinstance(pattern, Permutation):
        return f"PERMUTE({', '.join(map(spelled, pattern.parts))})"
    if isinstance(pattern, Exclusion):
        return f"{{- {spelled(pattern.part)} -}}"
    bounds = _SHORT.get((pattern.least, pattern.most))
    if bounds is None:
        most = "" if pattern.most is None else str(pattern.most)
        bounds = f"{{{most}}}" if most == str(pattern.least) else f"{{{pattern.least},{most}}}"
    part = _inside(pattern.part, Alternation, Concatenation, Quantified)
    return f"{part}{bounds}{'?' if pattern.reluctant else ''}"


def _inside(part: Pattern, *looser: type) -> str:
    """A part, in parentheses if it binds looser than what is around it."""
    empty = isinstance(part, Concatenation) and not part.parts
    return f"({spelled(part)})" if isinstance(part, looser) and not empty else spelled(part)
