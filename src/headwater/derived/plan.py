"""Plans of refreshes: what a refresh would do now, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headwater.base import markup
from headwater.derived.reports import Behind, Mode

__all__ = ["RefreshPlan"]


@dataclass(frozen=True, kw_only=True)
class RefreshPlan:
    """What a refresh would do now.

    Parameters
    ----------
    mode : "noop", "incremental" or "full"
    reason : str
        why, for people
    changes : mapping of str to int
        changed rows of each source since the frontier, as far as the log knows them
    rows : int
        rows of all sources, which computing from scratch would read
    upstream : mapping of str to RefreshPlan
        what would be done before to artefacts that it reads, in that order
    behind : sequence of Behind
        artefacts that it reads, directly or through others, and that would be left behind their own sources

    >>> print(RefreshPlan(mode="incremental", reason="3 rows have changed", changes={"orders": 3}))
    incremental: 3 rows have changed
      orders: 3 rows changed
    """

    mode: Mode
    reason: str
    changes: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    upstream: Mapping[str, RefreshPlan] = field(default_factory=dict)
    behind: Sequence[Behind] = ()

    def _details(self) -> list[str]:
        """Lines that a kind adds."""
        return []

    def _facts(self) -> list[tuple[str, object]]:
        """Names and values that a kind adds."""
        return []

    def __str__(self) -> str:
        lines = [f"{self.mode}: {self.reason}"]
        lines += [f"  {table}: {count:,} rows changed" for table, count in self.changes.items()]
        lines += [f"  {line}" for line in self._details()]
        lines += [f"  first {name}: {plan.mode}: {plan.reason}" for name, plan in self.upstream.items()]
        lines += [f"  behind: {one}" for one in self.behind]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return markup.facts(
            f"{self.mode}: {self.reason}",
            [
                ("changed", "\n".join(f"{table}: {count:,} rows" for table, count in self.changes.items())),
                *self._facts(),
                ("first", "\n".join(f"{name}: {plan.mode}: {plan.reason}" for name, plan in self.upstream.items())),
                ("behind", "\n".join(map(str, self.behind))),
            ],
        )
