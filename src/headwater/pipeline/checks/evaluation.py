"""Evaluating checks: the views of violations are brought to where their nodes are, and looked at.

**What a check blocks.** A check is about rows that are committed: a table's by whoever wrote them, an artefact's by its
refresh. A violation of severity ``error`` does not take them back; it holds back everything that reads the node,
directly or through others: `blocked` names these artefacts, and who refreshes leaves them as they are. So an online
table, an index or an export goes on answering from the last rows that passed, and its frontier says so. A check of an
artefact that people read directly (a view's table) does not hide that artefact's newest rows; let them read something
below it.

Violations of severity ``warn`` are reported, and hold back nothing.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from headwater.base import markup
from headwater.base.errors import HeadwaterError
from headwater.derived import kinds
from headwater.pipeline.checks.check import CHECKS, Check
from headwater.proof.nodes import Lineage

if TYPE_CHECKING:
    from headwater.derived.artefact import Artefact
    from headwater.derived.environment import Environment
    from headwater.derived.outline import Outline
    from headwater.lake.snapshot import Snapshot
    from headwater.lakehouse import Lake

__all__ = ["CheckResult", "CheckResults", "applied", "evaluate", "left_over", "violations_of"]

OWNER = "checks.project"
"""The property of a view of violations that names the project which declares the check."""
_SHOWN = 10
_QUOTED = 3


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What came of a check.

    Parameters
    ----------
    check : Check
    violations : int
        rows that break it
    rows : tuple of dict
        the first of them
    mode : str
        how the view of them was brought forward: "incremental", "full" or "noop"
    seconds : float
    error : HeadwaterError, optional
        why it could not be evaluated, which counts as a violation
    """

    check: Check
    violations: int = 0
    rows: tuple[dict[str, Any], ...] = ()
    mode: str = ""
    seconds: float = 0.0
    error: HeadwaterError | None = None

    @property
    def passed(self) -> bool:
        """Whether no row breaks it."""
        return self.error is None and not self.violations

    @property
    def blocks(self) -> bool:
        """Whether it holds back what reads the node."""
        return not self.passed and self.check.severity == "error"

    @property
    def reason(self) -> str:
        """Why it holds back what reads the node, with the first rows that break it."""
        if self.error is not None:
            return f"the test {self.check.name} of {self.check.node} could not be evaluated: {self.error.message}"
        more = self.violations - _QUOTED
        rows = ", ".join(str(row) for row in self.rows[:_QUOTED]) + (f" and {more:,} more" if more > 0 else "")
        return f"the test {self.check.name} of {self.check.node} fails: {rows}"

    def as_dict(self) -> dict[str, object]:
        """For ``--json``."""
        return {
            "name": self.check.name,
            "node": self.check.node,
            "kind": self.check.kind,
            "column": self.check.column,
            "severity": self.check.severity,
            "passed": self.passed,
            "violations": self.violations,
            "rows": list(self.rows),
            "mode": self.mode,
            "seconds": round(self.seconds, 6),
            "error": None if self.error is None else self.error.as_dict(),
        }

    def __str__(self) -> str:
        if self.error is not None:
            return f"{self.check.name}: {self.error.message}"
        word = "passed" if self.passed else f"{self.violations:,} row{'' if self.violations == 1 else 's'} break it"
        return f"{self.check.name}: {word}{'' if self.passed else f' ({self.check.severity})'}"


@dataclass(frozen=True)
class CheckResults:
    """What came of several checks.

    Parameters
    ----------
    all : tuple of CheckResult
    blocked : tuple of str
        artefacts that read a node with violations of severity error, directly or through others
    """

    all: tuple[CheckResult, ...]
    blocked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is held back."""
        return not any(one.blocks for one in self.all)

    def __iter__(self) -> Iterator[CheckResult]:
        return iter(self.all)

    def __len__(self) -> int:
        return len(self.all)

    def __str__(self) -> str:
        lines = [str(one) for one in self.all]
        return "\n".join([*lines, *([f"held back: {', '.join(self.blocked)}"] if self.blocked else [])])

    def _repr_html_(self) -> str:
        rows = [(one.check.name, one.check.severity, "yes" if one.passed else "no", one.violations) for one in self.all]
        note = f"held back: {', '.join(self.blocked)}" if self.blocked else ""
        return markup.listing("checks", ("check", "severity", "passed", "violations"), rows, note)


def evaluate(
    lake: Lake,
    checks: Iterable[Check],
    *,
    outlines: Mapping[str, Outline] = MappingProxyType({}),
    project: str | None = None,
) -> CheckResults:
    """Bring the violations of some checks to where their nodes are, and say who is held back.

    The views of violations are made when they are first needed, and kept: afterwards a check costs the change of its
    nodes. Nodes are taken as they are: refresh them first. ``outlines`` are those of the views, by their names, where
    they are known: a view that would have other columns now is made again. ``project`` is the one that declares them.

    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> orders = lake.write("orders", [{"id": 1, "amount": 10}, {"id": 1, "amount": 5}])
    >>> _ = lake.view("total", "SELECT sum(amount) AS total FROM orders")
    >>> found = evaluate(lake, [Check(kind="unique", node="orders", column="id")])
    >>> print(found)
    unique_orders_id: 1 row break it (error)
    held back: total
    """
    results = tuple(_evaluated(lake, one, outlines.get(one.view), project) for one in checks)
    lineage = Lineage(lake)
    nodes = sorted({name for one in results if one.blocks for name in (one.check.node,)})
    held = dict.fromkeys(below for name in nodes for below in lineage.downstream(name) if not below.startswith(CHECKS))
    return CheckResults(results, tuple(held))


def _evaluated(lake: Lake, check: Check, outline: Outline | None, project: str | None) -> CheckResult:
    began = time.perf_counter()
    try:
        return violations_of(lake, check, outline=outline, project=project)
    except HeadwaterError as error:
        return CheckResult(check=check, seconds=time.perf_counter() - began, error=error)


def violations_of(
    lake: Lake,
    check: Check,
    newest: Mapping[str, Snapshot] | None = None,
    outline: Outline | None = None,
    *,
    project: str | None = None,
) -> CheckResult:
    """Evaluate one check, over the newest versions of what it reads, or over those that ``newest`` has.

    With ``outline``, the view is made again where it would have other columns now.
    """
    began = time.perf_counter()
    done = applied(lake, check, outline, project=project).refresh_alone(None, newest=newest or {})
    table = lake.table(check.view)
    count = table.count()
    rows: Sequence[dict[str, Any]] = _first(table.to_reader(), _SHOWN) if count else []
    seconds = time.perf_counter() - began
    return CheckResult(check=check, violations=count, rows=tuple(rows), mode=done.mode, seconds=seconds)


def applied(lake: Lake, check: Check, outline: Outline | None, *, project: str | None = None) -> Artefact:
    """The view of a check's violations, made or changed if it is not as it should be.

    It belongs to the first project that declares it, by a property of its table; `left_over` finds those of a project.
    """
    kind, environment = kinds.kind("view"), lake.environment()
    if outline is None:
        return lake.view(check.view, check.violations)
    base = environment.table(check.view).current()
    options: dict[str, Any] = {"sql": check.violations}
    if project is not None and (base is None or OWNER not in base.state.metadata.configuration):
        options["properties"] = {OWNER: project}
    if base is None or kind.difference(check.view, options, outline, environment) is not None:
        return kind.define(check.view, options, environment)
    return kind.open(check.view, environment)


def left_over(
    artefacts: Mapping[str, str], environment: Environment, project: str, declared: Container[str]
) -> list[str]:
    """The views of tests that a project has declared before, and does not any more, among some artefacts."""
    found = []
    for name, kind in artefacts.items():
        if kind == "view" and name.startswith(CHECKS) and name not in declared:
            base = environment.table(name).current()
            if base is not None and base.state.metadata.configuration.get(OWNER) == project:
                found.append(name)
    return found


def _first(reader: Any, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for batch in reader:
        found += batch.slice(0, count - len(found)).to_pylist()
        if len(found) >= count:
            break
    return found
