"""The registry of kinds: how an artefact of each kind is opened.

Statements, the command line, the facade and the graph of dependencies ask here and know no kind by name. A kind is
declared with the module that holds it, which is imported when the first artefact of the kind is opened: a lake without
views loads no circuits. The module has a `Kind` called ``KIND``. What the kind is called is in `headwater.base.kinds`.

Two things a kind may bring for queries, which its declaration says so that nobody imports it to find out: table
functions, and narrowing, which finds the rows of a scan that may meet the conditions of a query (`narrowing`).
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headwater.base.errors import UnsupportedError

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.environment import Environment
    from headwater.derived.narrowing import Conditions, Narrowed
    from headwater.derived.outline import Outline, ShapeOf
    from headwater.derived.port import PinnedTables
    from headwater.lake.relation import Relation
    from headwater.lake.snapshot import Snapshot
    from headwater.sql.functions.user import UserFunction
    from headwater.sql.query import Arguments
    from headwater.sql.statements import CreateArtefact

__all__ = ["Kind", "declare", "kind", "kind_of_function", "loaded", "narrowing_kinds", "table_functions"]


class Kind(ABC):
    """A kind of derived artefact."""

    @abstractmethod
    def open(self, name: str, environment: Environment, base: Snapshot | None = None) -> Artefact:
        """A handle on the artefact of that name. Only that it is there is checked: it may be opened to be dropped.

        With ``base``, its table as it was looked at, the handle is for looking only, and asks for nothing again.
        """

    @abstractmethod
    def create(self, statement: CreateArtefact, environment: Environment) -> Artefact:
        """Make the artefact that a statement defines, or change it, without refreshing it."""

    # -- what a project declares -----------------------------------------------------------------------------------

    def outline(
        self, name: str, options: Mapping[str, Any], shape_of: ShapeOf, functions: Mapping[str, UserFunction]
    ) -> Outline:
        """What an artefact with these options would be, with everything checked that can be without reading rows.

        Nothing of it is there yet, and what it reads need not be either: ``shape_of`` knows the columns.
        """
        raise UnsupportedError.declaration(name, _name_of(self))

    def difference(self, name: str, options: Mapping[str, Any], meant: Outline, environment: Environment) -> str | None:
        """Why the artefact of that name, which is there, is not the one with these options; None if it is.

        ``meant`` is the outline of these options over the columns that its sources have now.
        """
        raise UnsupportedError.declaration(name, _name_of(self))

    def define(self, name: str, options: Mapping[str, Any], environment: Environment) -> Artefact:
        """Make the artefact with these options, or give them to the one that is there and has others (`difference`)."""
        raise UnsupportedError.declaration(name, _name_of(self))

    def know(self, name: str, options: Mapping[str, Any], environment: Environment) -> None:
        """A project declares the artefact of that name with these options: keep what only a process can have of it."""

    def finish(self, environment: Environment) -> None:
        """Return when nothing is done in the background for artefacts of this kind any more."""

    def table_function(
        self, name: str, arguments: Arguments, environment: Environment, pinned: PinnedTables
    ) -> Relation:
        """The rows of a table function that the kind was declared with, from tables as the query has pinned them."""
        raise NotImplementedError

    def narrowed(self, asked: Conditions, environment: Environment) -> Narrowed | None:
        """The rows of a scan that may meet its conditions; None where the kind has nothing to say about the table."""
        raise NotImplementedError


_modules: dict[str, str] = {}
_loaded: dict[str, Kind] = {}
_functions: dict[str, str] = {}
_narrowing: list[str] = []


def declare(name: str, module: str, *, functions: Sequence[str] = (), narrows: bool = False) -> None:
    """Let artefacts of a kind be opened by a module, and say what it brings for queries."""
    _modules[name] = module
    _functions.update(dict.fromkeys(functions, name))
    if narrows and name not in _narrowing:
        _narrowing.append(name)


def table_functions() -> list[str]:
    """The names of the table functions that kinds bring."""
    return sorted(_functions)


def kind_of_function(name: str) -> Kind | None:
    """The kind that brings a table function."""
    return kind(_functions[name]) if name in _functions else None


def narrowing_kinds() -> list[str]:
    """The names of the kinds that narrow scans."""
    return list(_narrowing)


def loaded() -> list[Kind]:
    """The kinds of which an artefact was opened in this process."""
    return list(_loaded.values())


def kind(name: str) -> Kind:
    """The kind of that name; an error if this Headwater does not know it."""
    if name not in _loaded:
        if name not in _modules:
            raise UnsupportedError.kind(name, sorted(_modules))
        made = importlib.import_module(_modules[name]).KIND
        assert isinstance(made, Kind), "a module of a kind has a KIND"
        _loaded[name] = made
    return _loaded[name]


def _name_of(made: Kind) -> str:
    """The name that a kind is declared by."""
    return next((name for name, one in _loaded.items() if one is made), type(made).__name__)
