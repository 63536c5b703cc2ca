"""The root of all errors, and how they are shown, sent and rebuilt."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.wording import underline

__all__ = ["HeadwaterError"]


class HeadwaterError(Exception):
    """The root: ``except hw.HeadwaterError`` catches everything Headwater raises on purpose."""

    # Where in the text that was read, for errors about a text: see `placed_at`.
    position: int | None = None
    # The name that is wrong, for errors about a name.
    subject: str | None = None

    def __init__(self, code: str, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.code, self.message, self.where, self.hint))

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
    kind: type[HeadwaterError], code: str, message: str, where: str | None, hint: str | None
) -> HeadwaterError:
    # Errors cross process borders (Spark tasks, process pools), so they pickle by their facts.
    return kind(code, message, where=where, hint=hint)
