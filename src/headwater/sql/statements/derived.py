"""REFRESH, DROP and SHOW, for every kind of derived artefact; and what the CREATE statements of kinds have in common.

The words between the verb and the name say which kind is meant (`base.kinds`): ``REFRESH MATERIALIZED VIEW spend``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from headwater.base.kinds import VIEW, KindWords, declared_words
from headwater.sql.statements.create_table import drops_readers
from headwater.sql.statements.cursor import Cursor
from headwater.sql.statements.registry import reader
from headwater.sql.statements.statement import Statement

__all__ = ["CreateArtefact", "CreateMode", "DropArtefact", "RefreshArtefact", "ShowArtefacts"]

CreateMode = Literal["error", "ignore", "replace"]
_ENGINES = ("auto", "local", "spark")


@dataclass(frozen=True)
class CreateArtefact(Statement):
    """Make an artefact; ``mode`` says what happens where one is there already. Each kind adds what defines it."""

    kind: ClassVar[str] = ""

    table: str
    mode: CreateMode = "error"


@dataclass(frozen=True)
class RefreshArtefact(Statement):
    """Bring an artefact forward, after what it reads unless ``cascade`` is off; ``full`` computes it from scratch.

    ``engine`` is who computes a view.
    """

    verb: ClassVar[str] = "REFRESH"

    kind: str
    table: str
    full: bool = False
    cascade: bool = True
    engine: str | None = None


@dataclass(frozen=True)
class DropArtefact(Statement):
    """Delete an artefact with all that belongs to it."""

    verb: ClassVar[str] = "DROP"

    kind: str
    table: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ShowArtefacts(Statement):
    """The artefacts of a kind, of the schema ``within``, whose names fit ``pattern``."""

    verb: ClassVar[str] = "SHOW"

    kind: str
    pattern: str | None = None
    within: str | None = None


def _read_refresh(kind: KindWords, cursor: Cursor) -> RefreshArtefact:
    table, full = cursor.table(f"the name of {_a(kind)}"), cursor.take("FULL")
    cascade = cursor.take("CASCADE") or not cursor.take("RESTRICT")
    return RefreshArtefact(kind.name, table, full, cascade, _read_engine(cursor) if kind is VIEW else None)


def _read_engine(cursor: Cursor) -> str | None:
    """``WITH (ENGINE = 'spark')``, if that is there."""
    if not cursor.take("WITH"):
        return None
    cursor.expect("(", "ENGINE", "=")
    at = cursor.token()
    engine = cursor.text_value("the name of an engine").lower()
    if engine not in _ENGINES:
        cursor.fail(f"{engine!r} is no engine for views", f"write one of {', '.join(map(repr, _ENGINES))}", at=at)
    cursor.expect(")")
    return engine


def _read_drop(kind: KindWords, cursor: Cursor) -> DropArtefact:
    if_exists = cursor.take("IF", "EXISTS")
    return DropArtefact(kind.name, cursor.table(f"the name of {_a(kind)}"), if_exists, drops_readers(cursor))


def _read_show(kind: KindWords, cursor: Cursor) -> ShowArtefacts:
    within = cursor.table("the name of a schema") if cursor.take("IN") or cursor.take("FROM") else None
    cursor.take("LIKE")
    return ShowArtefacts(kind.name, None if cursor.done else cursor.text_value("a pattern"), within)


def _a(kind: KindWords) -> str:
    return f"{'an' if kind.name[0] in 'aeiou' else 'a'} {kind.name}"


def _options(kind: KindWords) -> str:
    return " [WITH (ENGINE = 'spark')]" if kind is VIEW else ""


def _register(kind: KindWords) -> None:
    words, plural = kind.sql.split(), kind.sql_plural.split()
    reader("REFRESH", *words, form=f"REFRESH {kind.sql} name [FULL] [RESTRICT]{_options(kind)}")(
        partial(_read_refresh, kind)
    )
    reader("DROP", *words, form=f"DROP {kind.sql} [IF EXISTS] name [CASCADE]")(partial(_read_drop, kind))
    shown = partial(_read_show, kind)
    form = f"SHOW {kind.sql_plural} [IN schema] [LIKE 'pattern']"
    reader("SHOW", *plural, form=form)(shown)
    if len(words) > len(plural):
        reader("SHOW", *words[: len(words) - len(plural)], *plural, form=form)(shown)


for _kind in declared_words():
    _register(_kind)
