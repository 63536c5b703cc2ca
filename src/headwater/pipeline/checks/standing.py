"""Standing: what the data tests said when they were last evaluated, without evaluating them.

The view of a test's violations is there, with its rows and the frontier that they are about. So plans and statuses know
which nodes are held back at the price of looking at a log. A test whose view was never built, or has another query now,
has not been evaluated, and holds back nothing that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headwater.base.errors import HeadwaterError
from headwater.base.frontier import Frontier
from headwater.derived.lookup import Lookup, lag_of
from headwater.pipeline.checks.check import Check
from headwater.pipeline.checks.declaration import DeclaredCheck

__all__ = ["Standing", "broken_tests", "reason_of"]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A test of severity error that rows break.

    Parameters
    ----------
    check : Check
    violations : int
        rows that break it
    frontier : Frontier
        the versions that it was evaluated at
    reads : tuple of str
        what its query reads
    behind : bool
        whether something that it reads has changed since
    """

    check: Check
    violations: int
    frontier: Frontier
    reads: tuple[str, ...]
    behind: bool

    def __str__(self) -> str:
        rows = f"{self.violations:,} row{'' if self.violations == 1 else 's'}"
        return f"the test {self.check.name} of {self.check.node} fails: {rows} at {self.frontier}"

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "name": self.check.name,
            "node": self.check.node,
            "violations": self.violations,
            "frontier": dict(self.frontier),
            "behind": self.behind,
        }


def broken_tests(checks: Mapping[str, DeclaredCheck], lookup: Lookup) -> dict[str, tuple[Standing, ...]]:
    """The tests that hold back what reads their node, by that node; ``checks`` are by their views."""
    found: dict[str, tuple[Standing, ...]] = {}
    for view, declared in checks.items():
        standing = _standing(view, declared.check, lookup) if declared.check.severity == "error" else None
        if standing is not None:
            found[declared.check.node] = (*found.get(declared.check.node, ()), standing)
    return found


def reason_of(broken: Iterable[Standing]) -> str:
    """Why a node is held back."""
    return "; ".join(map(str, broken))


def _standing(view: str, check: Check, lookup: Lookup) -> Standing | None:
    try:
        kept = lookup.artefact(view)
        if kept is None or not kept.built or kept.definition != check.violations:
            return None
        rows = kept.rows
    except HeadwaterError:  # evaluating it says what is wrong
        return None
    if not rows:
        return None
    behind = bool(lag_of(kept, lookup))
    return Standing(check=check, violations=rows, frontier=kept.frontier, reads=kept.reads, behind=behind)
