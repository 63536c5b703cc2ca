"""The root of all errors, and how they are shown, sent and rebuilt.

An error says what to do next by its ``advice``: plain texts, and actions that each surface has words for (see
`headwater.base.errors.action`). Whoever raises it does not know the surface; the edge where a call, a statement or a
command came in does, and says so by `HeadwaterError.on`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from headwater.base.errors.action import Action, Hint, Part, composed, parts_of
from headwater.base.errors.phrase import Surface
from headwater.base.errors.wording import underline

__all__ = ["HeadwaterError"]


class HeadwaterError(Exception):
    """The root: ``except hw.HeadwaterError`` catches everything Headwater raises on purpose."""

    # Where in the text that was read, for errors about a text: see `placed_at`.
    position: int | None = None
    # The name that is wrong, for errors about a name.
    subject: str | None = None
    # For whom it is said, and what is known there that the actions leave open.
    surface: Surface = "python"
    known: tuple[tuple[str, str], ...] = ()

    def __init__(
        self,
        code: str,
        message: str,
        *,
        where: str | None = None,
        hint: Hint | None = None,
        actions: Sequence[Action] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.advice: tuple[Part, ...] = (*parts_of(hint), *actions)

    @property
    def hint(self) -> str | None:
        """What to do next, in the words of the surface."""
        return composed(self.advice, self.surface, dict(self.known))

    @hint.setter
    def hint(self, text: str | None) -> None:
        self.advice = parts_of(text)

    @property
    def actions(self) -> tuple[Action, ...]:
        """What the user can do next, as data."""
        return tuple(part for part in self.advice if isinstance(part, Action))

    def on(self, surface: Surface, **known: str | None) -> Self:
        """This error, said for a surface; ``known`` fills what actions leave open, such as the table or the lake.

        >>> error = HeadwaterError("E1609", "it was never built", actions=[Action("build", name="spend")])
        >>> error.on("cli", lake="data").hint
        'build it: headwater refresh data spend'
        """
        self.surface = surface
        merged = {**dict(self.known), **{name: value for name, value in known.items() if value is not None}}
        self.known = tuple(sorted(merged.items()))
        return self

    def advise(self, *parts: Part) -> Self:
        """This error, with more to do next behind what it says already."""
        self.advice = (*self.advice, *parts)
        return self

    def replace_actions(self, choose: Callable[[Action], Action]) -> Self:
        """This error, with each of its actions exchanged for the one that ``choose`` gives, for another audience."""
        self.advice = tuple(choose(part) if isinstance(part, Action) else part for part in self.advice)
        return self

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.where:
            lines.append(f"  where: {self.where}")
        if hint := self.hint:
            lines.append(f"  hint: {hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        facts = (type(self), self.code, self.message, self.where, self.advice)
        return (_rebuild, facts, {"surface": self.surface, "known": self.known})

    def _about(self, name: str) -> Self:
        self.subject = name
        return self

    def placed_at(self, text: str, position: int | None) -> Self:
        """This error, showing ``text`` with the place underlined."""
        self.position = position
        self.where = underline(text, position)
        return self

    def as_dict(self) -> dict[str, str | None]:
        """The same facts for ``--json`` and logs."""
        return {"code": self.code, "message": self.message, "where": self.where, "hint": self.hint}


def _rebuild(
    kind: type[HeadwaterError], code: str, message: str, where: str | None, advice: tuple[Part, ...]
) -> HeadwaterError:
    # Errors cross process borders (Spark tasks, process pools), so they pickle by their facts.
    return kind(code, message, where=where, hint=advice)
