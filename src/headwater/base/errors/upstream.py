"""Something that is read by what was to be refreshed could not be refreshed itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from headwater.base.errors.action import Action, Hint, parts_of
from headwater.base.errors.root import HeadwaterError
from headwater.base.errors.wording import list_some
from headwater.base.kinds import VIEW, KindWords

__all__ = ["UpstreamError"]


class UpstreamError(HeadwaterError):
    """A refresh stopped at an artefact that the one asked for reads. Its ``__cause__`` is the error there."""

    failed: str = ""
    """The artefact whose refresh failed."""
    asked: str = ""
    """The artefact whose refresh was asked for; it was left as it is."""
    refreshed: tuple[str, ...] = ()
    """Artefacts that were refreshed before; these refreshes are committed."""

    @classmethod
    def stopped(
        cls,
        asked: str,
        failed: str,
        why: str,
        where: str,
        hint: Hint,
        refreshed: Sequence[str],
        kind: KindWords = VIEW,
    ) -> Self:
        done = (
            f"; refreshed and committed before that: {list_some([f'`{one}`' for one in refreshed])}"
            if refreshed
            else ""
        )
        made = cls(
            "E1613",
            f"`{asked}` was not refreshed, because `{failed}`, which it reads, could not be: {why}{done}",
            where=where or None,
            hint=parts_of(hint),
            actions=[Action("refresh_alone", also=True, name=asked, kind=kind)],
        )
        made.failed, made.asked, made.refreshed = failed, asked, tuple(refreshed)
        return made

    def __reduce__(self) -> tuple[object, ...]:
        rebuild, facts, state = super().__reduce__()
        assert isinstance(state, dict)
        return rebuild, facts, {**state, "failed": self.failed, "asked": self.asked, "refreshed": self.refreshed}
