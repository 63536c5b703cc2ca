"""How one action is said: a template per surface, with its arguments in braces and code between « and ».

The problem: the same next step is a method call in Python, a statement in SQL and a command in a terminal, and a hint
that names the wrong one cannot be followed. The idea: a record holds all forms of an action side by side, and marks
what of a form is code. The marks are not shown; they let the tests take each form out of its sentence and give it to
the compiler, to the statement parser or to the parser of the command line.

The surfaces:

- ``python``: the caller called a method.
- ``sql``: the caller wrote a statement and passed it to ``lake.sql``; arguments of that call can be named.
- ``cli-sql``: the statement was given to ``headwater sql``; its options can be named.
- ``cli``: another verb of the command line.

A template has slots like `str.format`: ``{name}``, ``{kind.sql}``. ``{name!r}`` is a Python literal, and ``{name!q}`` a
name in SQL, quoted where it has to be. What is not known is shown as ``…``. A surface that has no way to do something
has None, and the record says ``why``.

>>> phrase = Phrase(python="call «drop({name!r})»", sql="write «DROP TABLE {name!q}»")
>>> phrase.render("python", {"name": "my orders"}), phrase.render("sql", {"name": "my orders"})
("call drop('my orders')", 'write DROP TABLE `my orders`')
>>> phrase.render("cli", {"name": "orders", "lake": "data"})
'write headwater sql data -c "DROP TABLE orders"'
>>> phrase.forms("cli-sql", {})
['DROP TABLE …']
"""

from __future__ import annotations

import re
import shlex
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from headwater.base.kinds import VIEW

__all__ = ["AS_SQL", "SURFACES", "Phrase", "Surface"]

Surface = Literal["python", "sql", "cli-sql", "cli"]
SURFACES: tuple[Surface, ...] = get_args(Surface)

AS_SQL = "«as in SQL»"
"""The form is SQL's: as it is for ``cli-sql``, and as an argument of ``headwater sql`` for ``cli``."""

_CODE = re.compile("«(.*?)»")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NEEDS_SINGLE_QUOTES = re.compile(r"[\"`$\\!]")
# What a slot stands for where neither the action nor the surface says so.
_DEFAULTS: Mapping[str, object] = {"kind": VIEW, "lake": "LAKE", "when": "", "tail": ""}


@dataclass(frozen=True, slots=True)
class Phrase:
    """The forms of one action."""

    python: str | None
    sql: str | None
    cli_sql: str | None = AS_SQL
    cli: str | None = AS_SQL
    why: str = ""
    """Why a surface has no form."""
    names_engine: bool = False
    """It says which engine to take, so that nothing more has to be said of engines."""

    def template(self, surface: Surface) -> str | None:
        """What is said on a surface, with slots and marks."""
        found = {"python": self.python, "sql": self.sql, "cli-sql": self.cli_sql, "cli": self.cli}[surface]
        return self.sql if found == AS_SQL else found

    def render(self, surface: Surface, known: Mapping[str, object]) -> str | None:
        """The sentence for a surface; None where there is nothing to say."""
        pieces = self._pieces(surface, known)
        return None if pieces is None else "".join(text for text, _ in pieces)

    def forms(self, surface: Surface, known: Mapping[str, object]) -> list[str]:
        """The pieces of code in the sentence for a surface."""
        return [text for text, is_code in self._pieces(surface, known) or () if is_code]

    def slots(self) -> set[str]:
        """The names of all arguments that some form mentions."""
        templates = [t for t in map(self.template, SURFACES) if t is not None]
        named = [part[1] for t in templates for part in string.Formatter().parse(t)]
        return {name.partition(".")[0] for name in named if name}

    def _pieces(self, surface: Surface, known: Mapping[str, object]) -> list[tuple[str, bool]] | None:
        template = self.template(surface)
        if template is None:
            return None
        filled: Callable[[str], str] = lambda text: _SLOTS.vformat(text, (), {**_DEFAULTS, **known})  # noqa: E731
        command = surface == "cli" and self.cli == AS_SQL
        pieces = []
        for at, text in enumerate(_CODE.split(template)):
            said = filled(text)
            if at % 2 and command:
                said = f"headwater sql {filled('{lake}')} -c {_argument(said)}"
            pieces.append((said, bool(at % 2)))
        return pieces


class _Unknown:
    """Stands for an argument that nobody knows, and for everything of it."""

    def __getattr__(self, name: str) -> _Unknown:
        return self

    def __repr__(self) -> str:
        return "…"


_UNKNOWN = _Unknown()


class _Slots(string.Formatter):
    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return kwargs.get(str(key), _UNKNOWN)

    def convert_field(self, value: Any, conversion: Any) -> Any:
        if value is _UNKNOWN or conversion != "q":
            return super().convert_field(value, None if value is _UNKNOWN else conversion)
        return ".".join(map(_quoted, str(value).split(".")))

    def format_field(self, value: Any, format_spec: str) -> str:
        return str(format(str(value), format_spec))


_SLOTS = _Slots()


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _argument(text: str) -> str:
    """One word for a shell: in double quotes, since SQL is full of single ones, unless the shell would look inside."""
    return shlex.quote(text) if _NEEDS_SINGLE_QUOTES.search(text) else f'"{text}"'
