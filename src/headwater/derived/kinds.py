"""The registry of kinds: how an artefact of each kind is opened.

Statements, the command line, the facade and the graph of dependencies ask here and know no kind by name. A kind is
declared with the module that holds it, which is imported when the first artefact of the kind is opened: a lake without
views loads no circuits. The module has a `Kind` called ``KIND``. What the kind is called is in `headwater.base.kinds`.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from headwater.base.errors import UnsupportedError

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.environment import Environment
    from headwater.lake.snapshot import Snapshot
    from headwater.sql.statements import CreateArtefact

__all__ = ["Kind", "declare", "kind", "loaded"]


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

    def finish(self, environment: Environment) -> None:
        """Return when nothing is done in the background for artefacts of this kind any more."""


_modules: dict[str, str] = {}
_loaded: dict[str, Kind] = {}


def declare(name: str, module: str) -> None:
    """Let artefacts of a kind be opened by a module."""
    _modules[name] = module


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
