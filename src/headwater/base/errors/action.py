"""An action: what a user can do next about an error, as data.

An error is raised deep inside, by code that does not know who asked: a method call, a statement, or a command. So it
does not say what to do; it holds actions, each a verb with its arguments, and the edge that knows the surface has them
said there. How each verb is said is in one table, `headwater.base.errors.phrases`.

>>> action = Action("build", name="spend")
>>> action.render("python"), action.render("sql")
("build it: lake.view('spend').refresh()", 'build it: REFRESH MATERIALIZED VIEW spend')
>>> composed(("restore the file", Action("restore_table", which="an earlier version")), "python")
'restore the file, or restore() the table to an earlier version'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from headwater.base.errors.phrase import Phrase, Surface
from headwater.base.errors.phrases import PHRASES
from headwater.base.kinds import KindWords

__all__ = ["Action", "Hint", "Part", "composed", "define_again", "parts_of"]


@dataclass(frozen=True, init=False)
class Action:
    """A verb of the table with its arguments. An argument that is None is not known."""

    verb: str
    given: tuple[tuple[str, object], ...]
    also: bool
    """It is said beside what stands before it (``;``), and not in its place (``, or``)."""

    def __init__(self, verb: str, *, also: bool = False, **given: object) -> None:
        unknown = set(given) - PHRASES[verb].slots()
        assert not unknown, f"{verb} has no {unknown}"
        known = tuple(sorted((name, value) for name, value in given.items() if value is not None))
        for name, value in (("verb", verb), ("given", known), ("also", also)):
            object.__setattr__(self, name, value)

    @property
    def phrase(self) -> Phrase:
        return PHRASES[self.verb]

    def render(self, surface: Surface, known: Mapping[str, object] | None = None) -> str | None:
        """The sentence for a surface; ``known`` fills what the action leaves open.
        None where there is nothing to say.
        """
        return self.phrase.render(surface, {**(known or {}), **dict(self.given)})

    def forms(self, surface: Surface, known: Mapping[str, object] | None = None) -> list[str]:
        """The pieces of code in that sentence."""
        return self.phrase.forms(surface, {**(known or {}), **dict(self.given)})

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON can hold it; see `from_dict`."""
        given = {name: asdict(value) if isinstance(value, KindWords) else value for name, value in self.given}
        return {"verb": self.verb, "also": self.also, "given": given}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Self:
        """The action that `as_dict` gave; a ValueError, KeyError or TypeError where the facts are not those of one."""
        given = {name: KindWords(**value) if name == "kind" else value for name, value in facts["given"].items()}
        if not PHRASES[facts["verb"]].slots() >= set(given):
            raise ValueError(f"{facts['verb']} has no such arguments")
        return cls(facts["verb"], also=facts["also"], **given)


Part = str | Action
"""A piece of a hint: plain advice that is the same everywhere, or an action."""
Hint = str | Action | tuple[Part, ...]
"""What an error is given to say what to do next."""


def parts_of(hint: Hint | None) -> tuple[Part, ...]:
    """A hint as its parts."""
    if hint is None:
        return ()
    return hint if isinstance(hint, tuple) else (hint,)


def composed(parts: Iterable[Part], surface: Surface, known: Mapping[str, object] | None = None) -> str | None:
    """The parts as one line: alternatives are joined by "or", the rest by semicolons. None where nothing is said."""
    said = [
        (text, isinstance(part, str) or part.also)
        for part in parts
        if (text := part if isinstance(part, str) else part.render(surface, known))
    ]
    line = ""
    for at, (text, beside) in enumerate(said):
        if not line:
            line = text
        elif line.endswith(("?", ".")):
            line = f"{line} {text[0].upper()}{text[1:]}" if beside else f"{line} Or {text}"
        elif beside:
            line = f"{line}; {text}"
        else:
            last = at + 1 == len(said) or said[at + 1][1]
            line = f"{line}, {'or ' if last else ''}{text}"
    return line or None


def define_again(*, kind: KindWords, **facts: object) -> Action:
    """Define something derived again, by a statement or by a function in Python.

    >>> define_again(kind=KindWords("velocity", "", "", "", "", by_function=True), intro="again", name="v").verb
    'define_function_again'
    """
    also = bool(facts.pop("also", False))
    return Action("define_function_again" if kind.by_function else "define_again", also=also, kind=kind, **facts)
