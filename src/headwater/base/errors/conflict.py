"""Another writer committed first, and retrying would not be safe."""

from __future__ import annotations

from typing import Self

from headwater.base.errors.action import Action
from headwater.base.errors.root import HeadwaterError
from headwater.base.kinds import VIEW, KindWords

__all__ = ["ConflictError"]


class ConflictError(HeadwaterError):
    """Another writer committed first, and retrying would not be safe."""

    @classmethod
    def lost(cls, what: str, version: int, operation: str, where: str) -> Self:
        return cls(
            "E4001",
            f"{what}, by version {version} ({operation})",
            where=where,
            hint="nothing was written; run the operation again on the new version",
        )

    @classmethod
    def too_many_retries(cls, attempts: int, where: str) -> Self:
        return cls(
            "E4002",
            f"lost the race for the next version {attempts} times",
            where=where,
            hint="too many writers commit at once: batch the writes, or raise HEADWATER_COMMIT_RETRIES",
        )

    @classmethod
    def state_locked(cls, owner: str, where: str) -> Self:
        return cls(
            "E4003",
            f"the state is being written already, by {owner}",
            where=where,
            hint="wait until that ends, or stop it",
            actions=[Action("open_read_only", also=True)],
        )

    @classmethod
    def derived_changed(cls, name: str, what: str, where: str, kind: KindWords = VIEW) -> Self:
        return cls(
            "E4004",
            f"the table of the {kind.it} `{name}` was changed by others: {what}",
            where=where,
            actions=[Action("rebuild", name=name, kind=kind)],
        )

    @classmethod
    def project_busy(cls, owner: str, where: str) -> Self:
        return cls(
            "E4005",
            f"the project is being refreshed already, by {owner}",
            where=where,
            hint="wait until that ends: `--wait 10m` does so, or stop it",
        )
