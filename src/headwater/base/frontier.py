"""Frontiers: how far along each table something has got.

The problem: a derived artefact reflects several tables, each at its own version, so "how fresh is it" is not one
number. The idea: a frontier is a map from table to version, and a table that is absent is *before* its version 0.
Frontiers are ordered table by table, which makes them a lattice: two of them need not be comparable, but they
always have a least upper bound (``|``) and a greatest lower bound (``&``), and the empty frontier is below all.

A name can come to stand for another table: one that was dropped and made again has its own versions, and version 3 of
it is not "behind" version 42 of the old one. So an entry may say which table it is about (`TableIdentity`). Two entries
that are known to be about different tables are neither equal nor ordered, and joining them is an error. An entry
without an identity, such as one that a person typed, is taken to be about the table at hand.

Invariants: versions are integers >= 0; frontiers are immutable and hashable; the text form, ``cards@17 orders@42``, is
sorted by name and leaves identities out, and `Frontier.parse` is its exact inverse. Names other than letters, digits,
``_``, ``-``, ``.`` and ``/`` are written between backticks, a backtick in a name being doubled.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

from headwater.base.errors import InputError

__all__ = ["Frontier", "TableIdentity"]

_PLAIN = re.compile(r"[\w./-]+")
_ITEM = re.compile(r"(?:`((?:[^`]|``)*)`|([\w./-]+))@([0-9]+)")
_DIGITS_AT_MOST = 19  # a Delta version is a 64-bit integer


@dataclass(frozen=True, slots=True)
class TableIdentity:
    """Which table an entry of a frontier is about.

    Parameters
    ----------
    id : str
        the id in the table's own log, which a table that is made again under the same name does not share
    columns : mapping of str to str
        for tables whose columns are mapped: what each column that was read is called inside the data files, by its
        name in lower case. A column that was dropped and added again has the same name and another identity.
    """

    id: str
    columns: Mapping[str, str] = field(default_factory=dict)


class Frontier(Mapping[str, int]):
    """An immutable map table -> version, partially ordered.

    Parameters
    ----------
    versions : mapping or iterable of (table, version), optional

    Examples
    --------
    >>> a = Frontier({"orders": 42, "cards": 17})
    >>> print(a)
    cards@17 orders@42
    >>> a < a.advance("orders", 43)
    True
    >>> b = Frontier(orders=50)
    >>> a <= b, b <= a, a.comparable(b)
    (False, False, False)
    >>> print(a | b, "and", a & b)
    cards@17 orders@50 and orders@42

    An entry can say which table it is about:

    >>> old = Frontier(orders=42).identified({"orders": TableIdentity("a1")})
    >>> new = Frontier(orders=42).identified({"orders": TableIdentity("b2")})
    >>> old == new, old <= new, old.replaced_in(new), old == Frontier(orders=42)
    (False, False, ['orders'], True)
    """

    __slots__ = ("_hash", "_identities", "_versions")

    _versions: dict[str, int]
    _identities: dict[str, TableIdentity]
    _hash: int | None

    def __init__(self, versions: Mapping[str, int] | Iterable[tuple[str, int]] = (), /, **tables: int) -> None:
        merged = {**dict(versions), **tables}
        for table, version in merged.items():
            _check(table, version)
        self._versions = {table: merged[table] for table in sorted(merged)}
        self._identities = dict(versions._identities) if isinstance(versions, Frontier) else {}
        self._hash = None

    # -- the map ---------------------------------------------------------------------------------------------------

    def __getitem__(self, table: str) -> int:
        return self._versions[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._versions.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frontier):
            return NotImplemented
        return self._versions == other._versions and not self.replaced_in(other)

    # -- which tables they are -------------------------------------------------------------------------------------

    @property
    def identities(self) -> Mapping[str, TableIdentity]:
        """Which tables the entries are about, as far as that is known."""
        return MappingProxyType(self._identities)

    def identified(self, identities: Mapping[str, TableIdentity]) -> Self:
        """The same versions, of these tables."""
        made = type(self)(self._versions)
        made._identities = {t: identities[t] for t in self._versions if t in identities}
        return made

    def replaced_in(self, other: Frontier) -> list[str]:
        """The tables whose names are known to stand for other tables in ``other``."""
        mine, theirs = self._identities, other._identities
        return [t for t, identity in mine.items() if t in theirs and theirs[t].id != identity.id]

    # -- moving ----------------------------------------------------------------------------------------------------

    def advance(self, table: str, version: int) -> Self:
        """This frontier with ``table`` at ``version``, which must not lie behind.

        >>> print(Frontier(orders=3).advance("orders", 5).advance("cards", 0))
        cards@0 orders@5
        """
        _check(table, version)
        have = self._versions.get(table, -1)
        if version < have:
            raise InputError.bad_frontier(_item(table, version), f"`{table}` is already at {have}")
        return type(self)({**self._versions, table: version}).identified(self._identities)

    def restrict(self, tables: Iterable[str]) -> Self:
        """Only the entries of ``tables``.

        >>> print(Frontier(orders=3, cards=1).restrict(["orders", "shops"]))
        orders@3
        """
        return type(self)({t: self._versions[t] for t in tables if t in self._versions}).identified(self._identities)

    # -- the lattice -----------------------------------------------------------------------------------------------

    def __le__(self, other: object) -> bool:
        if not isinstance(other, Frontier):
            return NotImplemented
        behind = all(version <= other._versions.get(table, -1) for table, version in self._versions.items())
        return behind and not self.replaced_in(other)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Frontier):
            return NotImplemented
        return self != other and self <= other

    def __ge__(self, other: object) -> bool:
        return other <= self if isinstance(other, Frontier) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return other < self if isinstance(other, Frontier) else NotImplemented

    def comparable(self, other: Frontier) -> bool:
        """Whether one of the two has got at least as far as the other in every table."""
        return self <= other or other <= self

    def join(self, other: Frontier) -> Self:
        """The least frontier that is beyond both (``|``); an error where they are about different tables."""
        for table in self.replaced_in(other):
            raise InputError.bad_frontier(f"{self} | {other}", f"`{table}` is not the same table in both")
        both = dict(self._versions)
        for table, version in other._versions.items():
            both[table] = max(version, both.get(table, version))
        # Of one that both know, the later entry also knows the columns.
        later = {t: i for t, i in other._identities.items() if other[t] >= self._versions.get(t, -1)}
        return type(self)(both).identified({**other._identities, **self._identities, **later})

    def meet(self, other: Frontier) -> Self:
        """The greatest frontier that both have reached (``&``)."""
        theirs, replaced = other._versions, self.replaced_in(other)
        both = {t: min(v, theirs[t]) for t, v in self._versions.items() if t in theirs and t not in replaced}
        earlier = {t: i for t, i in other._identities.items() if other[t] <= self._versions.get(t, -1)}
        return type(self)(both).identified({**other._identities, **self._identities, **earlier})

    def __or__(self, other: object) -> Self:
        return self.join(other) if isinstance(other, Frontier) else NotImplemented

    def __and__(self, other: object) -> Self:
        return self.meet(other) if isinstance(other, Frontier) else NotImplemented

    # -- text ------------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return " ".join(_item(table, version) for table, version in self._versions.items())

    def __repr__(self) -> str:
        return f"Frontier({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` writes; entries may come in any order, but a table only once.

        >>> Frontier.parse("orders@42 `my table`@1")
        Frontier('`my table`@1 orders@42')
        >>> Frontier.parse("orders:42")
        Traceback (most recent call last):
        ...
        headwater.base.errors.InputError: error[E1009]: `orders:42` is not a frontier: cannot read `orders:42`
          hint: write it like `orders@42 cards@17`
        """
        versions: dict[str, int] = {}
        position, end = 0, len(text)
        while True:
            while position < end and text[position].isspace():
                position += 1
            if position == end:
                return cls(versions)
            found = _ITEM.match(text, position)
            if found is None or not (found.end() == end or text[found.end()].isspace()):
                raise InputError.bad_frontier(text, f"cannot read `{text[position:].split(maxsplit=1)[0]}`")
            quoted, plain, digits = found.groups()
            table = plain if quoted is None else quoted.replace("``", "`")
            if table in versions:
                raise InputError.bad_frontier(text, f"`{table}` appears twice")
            if len(digits) > _DIGITS_AT_MOST:
                raise InputError.bad_frontier(text, f"version {digits} is too large")
            _check(table, int(digits), text)
            versions[table] = int(digits)
            position = found.end()

    def to_json(self) -> str:
        """A JSON object, tables in order.

        >>> Frontier(orders=42, cards=17).to_json()
        '{"cards": 17, "orders": 42}'
        """
        return json.dumps(self._versions, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`."""
        try:
            versions = json.loads(text)
        except ValueError as error:
            raise InputError.bad_frontier(text, f"it is not JSON ({error})") from None
        if not isinstance(versions, dict):
            raise InputError.bad_frontier(text, "it is not a JSON object")
        for table, version in versions.items():
            _check(table, version, text)
        return cls(versions)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{html.escape(t)}</td><td>{v}</td></tr>" for t, v in self._versions.items())
        return f"<table><thead><tr><th>table</th><th>version</th></tr></thead><tbody>{rows}</tbody></table>"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (type(self), self._versions, self._identities))


def _rebuilt(kind: type[Frontier], versions: dict[str, int], identities: dict[str, TableIdentity]) -> Frontier:
    return kind(versions).identified(identities)


def _item(table: str, version: int) -> str:
    name = table if _PLAIN.fullmatch(table) else "`" + table.replace("`", "``") + "`"
    return f"{name}@{version}"


def _check(table: object, version: object, text: str | None = None) -> None:
    shown = f"{table}@{version}" if text is None else text
    if not isinstance(table, str):
        raise InputError.bad_frontier(shown, "a table's name is a string")
    if not isinstance(version, int) or isinstance(version, bool):
        raise InputError.bad_frontier(shown, f"the version of `{table}` is not an integer")
    if not 0 <= version < 1 << 63:
        raise InputError.bad_frontier(shown, f"the version of `{table}` is not between 0 and 2**63 - 1")
