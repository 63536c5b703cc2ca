"""Execution: the nodes of a project, brought forward in the order in which they read each other, side by side.

A node is ready when all that it reads is where it should be. Ready nodes are worked on by a few threads. Each is first
given the definition that the project declares, then refreshed to the pinned versions (`pins`), then its publish is
written into the ledger. One that fails is tried again if that may help (`retries`); when it has failed, the nodes that
read it are left as they are, and all others go on.

The data tests of a node are evaluated after its publish, each as soon as all that it reads is there, over the same
pinned versions. What reads the node waits for them, and one that fails with severity ``error`` leaves it as it is, with
all that reads it in turn.

What happens if the process ends anywhere: a node is either as it was or at its new frontier, because its publish is one
commit; the ledger may lack a row, which the next run writes first; definitions that were changed stay changed, and the
next run goes on from there. So running again converges, and nothing has to be cleaned up by hand.
"""

from __future__ import annotations

import contextvars
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from headwater.base import events, faults
from headwater.base.errors import HeadwaterError, ProjectError
from headwater.derived import kinds
from headwater.derived.artefact import Artefact
from headwater.derived.environment import Environment
from headwater.derived.reports import Refresh
from headwater.pipeline.checks.declaration import DeclaredCheck
from headwater.pipeline.checks.evaluation import CheckResult, left_over, violations_of
from headwater.pipeline.cpu import CpuShares
from headwater.pipeline.graph import Graph
from headwater.pipeline.ledger import Entry, Ledger
from headwater.pipeline.logs import log_check, log_node
from headwater.pipeline.node import Node
from headwater.pipeline.pins import Pins
from headwater.pipeline.retries import retried
from headwater.pipeline.run import NodeRun, NodeState, Run
from headwater.pipeline.tracing import span

if TYPE_CHECKING:
    from headwater.lakehouse import Lake

__all__ = ["Execution", "Options", "attach_sources", "there"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a refresh is run."""

    full: bool = False
    strict: bool = False
    workers: int = 1
    retries: int = 3
    retry_wait_seconds: float = 1.0
    on_change: Callable[[NodeRun], None] = field(default=lambda _: None)


class Execution:
    """One refresh of some nodes of a project."""

    def __init__(
        self,
        lake: Lake,
        project: str,
        graph: Graph,
        names: Sequence[str],
        options: Options,
        *,
        stopped: threading.Event,
        checks: Mapping[str, DeclaredCheck] = MappingProxyType({}),
    ) -> None:
        self.lake = lake
        self.graph = graph
        self.options = options
        self.stopped = stopped
        self.checks = checks
        self.guard = threading.Lock()
        self.environment: Environment = lake.environment()
        self.ledger = Ledger(lake, project)
        self.pins = Pins(self.environment)
        self.shares = CpuShares()
        self.have = dict(self.environment.artefacts())
        self.run = Run(f"{time.time_ns() // 1_000_000:x}-{uuid.uuid4().hex[:8]}", project, datetime.now(UTC))
        for name in names:
            self.run.nodes[name] = NodeRun(name, graph.nodes[name].kind)

    def go(self) -> Run:
        """Do it, and report."""
        start = time.perf_counter()
        names = list(self.run.nodes)
        attach_sources(self.lake, self.graph)
        read = {source for name in names for source in self.graph.reads(name)}
        read |= {source for check in self.checks.values() for source in check.reads}
        self.pins.look(sorted(read - set(names)))
        self.run.frontier = self.pins.frontier
        self._catch_up(names)
        faults.point("pipeline.run.begin", self.run.id)
        self._work(names)
        self._drop_left_tests()
        self.run.stopped = self.stopped.is_set()
        for one in self.run.nodes.values():
            if one.state == "waiting":
                self._state(one, "stopped")
        self.run.seconds = time.perf_counter() - start
        return self.run

    def _catch_up(self, names: Iterable[str]) -> None:
        """Write what the ledger lacks, because a run ended between a publish and its row."""
        for name in names:
            found = there(self.graph.nodes[name], self.environment, self.have)
            if found is not None and found.built:
                self.ledger.publish(found, None)

    def _drop_left_tests(self) -> None:
        """Drop the views of data tests that the project does not declare any more."""
        for view in left_over(self.have, self.environment, self.run.project, self.graph.checks):
            faults.point("pipeline.check.before_drop", view)
            try:
                kinds.kind("view").open(view, self.environment).drop()
            except HeadwaterError as error:  # somebody's view reads it, or it cannot be reached: it can wait
                events.notice(f"{view}, of a test that is not declared any more, is left: {error.message}")
                continue
            self.run.dropped_tests.append(view)

    def _work(self, names: Sequence[str]) -> None:
        waiting = {name: {r for r in self.graph.reads(name) if r in self.run.nodes} for name in names}
        for name in names:
            waiting[name] |= {view for view in self.graph.checks_of(self.graph.reads(name)) if view in self.checks}
        for view, check in self.checks.items():
            waiting[view] = {read for read in check.reads if read in self.run.nodes}
        running: dict[Future[None], str] = {}
        with ThreadPoolExecutor(self.options.workers, thread_name_prefix="headwater-node") as threads:
            while waiting or running:
                if not self.stopped.is_set():
                    for name in [name for name, left in waiting.items() if not left]:
                        del waiting[name]
                        context = contextvars.copy_context()
                        work = self._check if name in self.checks else self._node
                        running[threads.submit(context.run, work, name)] = name
                if not running:
                    break
                done, _ = wait(running, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    name = running.pop(future)
                    future.result()
                    for left in waiting.values():
                        left.discard(name)

    # -- one node --------------------------------------------------------------------------------------------------

    def _node(self, name: str) -> None:
        one = self.run.nodes[name]
        reads = self.graph.reads(name)
        lost = [r for r in reads if self._is_lost(r)]
        with self.guard:
            results = list(self.run.checks.values())
        broken = [result for result in results if result.blocks and result.check.node in reads]
        if lost or broken:
            broken += [result for read in lost for result in self.run.nodes[read].broken]
            causes = {cause for read in lost for cause in self._causes(read)}
            one.blocked_by = tuple(sorted(causes | {result.check.node for result in broken}))
            one.broken = tuple({result.check.name: result for result in broken}.values())
            self._state(one, "blocked")
            return
        if self.stopped.is_set():
            self._state(one, "stopped")
            return
        start = time.perf_counter()
        try:
            with self.shares.at_work(one.name), span("node", node=one.name, kind=one.kind, run=self.run.id):
                self._state(one, "running")
                self._refreshed(one, start)
        except HeadwaterError as error:
            one.error = error
        except Exception as error:  # noqa: BLE001  one node's failure, whatever it is, is not another's
            one.error = _unexpected(error)
        one.seconds = time.perf_counter() - start
        one.cpu_seconds = self.shares.seconds(one.name)
        if one.error is not None:
            self._record_failure(one)
            self._state(one, "failed")
            return
        assert one.refresh is not None, "it was refreshed"
        self._state(one, "noop" if one.refresh.mode == "noop" and one.change is None else "done")

    def _refreshed(self, one: NodeRun, start: float) -> None:
        def step() -> tuple[Artefact, Refresh]:
            one.tries += 1
            return self._step(one)

        def on_retry(error: Exception, number: int, seconds: float) -> None:
            self._state(one, "retrying")
            events.notice(f"{one.name}: try {number} failed, again in {seconds:.1f} s: {error}")

        artefact, done = retried(
            step,
            retries=self.options.retries,
            wait_seconds=self.options.retry_wait_seconds,
            stopped=self.stopped,
            on_retry=on_retry,
        )
        one.refresh, one.rows_total = done, artefact.rows
        if done.mode != "noop" or one.change is not None:
            one.cpu_seconds = self.shares.seconds(one.name)
            entry = Entry(
                run=self.run.id,
                node=one.name,
                kind=one.kind,
                reason=done.reason,
                before=done.before,
                seconds=time.perf_counter() - start,
                cpu_seconds=one.cpu_seconds,
                rows_total=one.rows_total,
                tries=one.tries,
            )
            faults.point("pipeline.node.published", one.name)
            self.ledger.publish(artefact, entry)
        self.pins.published(one.name, done.after)

    def _step(self, one: NodeRun) -> tuple[Artefact, Refresh]:
        """Give a node its definition, and bring it forward."""
        node = self.graph.nodes[one.name]
        kind = kinds.kind(node.kind)
        artefact = there(node, self.environment, self.have)
        change, why, was = None, None, 0
        if artefact is None:
            change = "created"
        else:
            was = artefact.record.published
            why = kind.difference(node.name, node.options, self.graph.outlines[node.name], self.environment)
            change = None if why is None else "changed"
            if why is not None and self.options.strict and artefact.built:
                raise ProjectError.full_refused(node.name, why, node.where)
        if change is not None:
            artefact = kind.define(node.name, node.options, self.environment)
            self.have[node.name] = node.kind
            one.change = change
        assert artefact is not None, "it is defined"
        reads = artefact.reads
        for name in reads:
            if name in self.pins.failed:
                raise self.pins.failed[name]
        newest = self.pins.of(reads)
        if self.options.strict and artefact.built:
            plan = artefact.plan_alone(None, newest=newest)
            if plan.mode == "full":
                raise ProjectError.full_refused(node.name, plan.reason, node.where)
        done = artefact.refresh_alone(None, full=self.options.full, newest=newest)
        last = artefact.record.last
        if why is not None and done.mode == "noop" and last is not None and artefact.record.published > was:
            # Giving it the definition has published its rows already.
            done = replace(done, mode=last.mode, rows_in=last.rows_in, rows_out=last.rows_out, reason=why)
        return artefact, done

    # -- one data test ---------------------------------------------------------------------------------------------

    def _check(self, view: str) -> None:
        """Evaluate a test over the pinned versions; where its node failed, that blocks enough."""
        declared = self.checks[view]
        check = declared.check
        if self.stopped.is_set() or self._is_lost(check.node):
            return
        start = time.perf_counter()
        try:
            with span("test", test=check.name, node=check.node, run=self.run.id):
                result = retried(
                    lambda: violations_of(
                        self.lake,
                        check,
                        self.pins.of(declared.reads),
                        declared.outline,
                        project=self.run.project,
                    ),
                    retries=self.options.retries,
                    wait_seconds=self.options.retry_wait_seconds,
                    stopped=self.stopped,
                    on_retry=lambda error, number, seconds: events.notice(
                        f"{check.name}: try {number} failed, again in {seconds:.1f} s: {error}"
                    ),
                )
        except Exception as error:  # noqa: BLE001  what cannot be evaluated holds back as a failure does
            found = error if isinstance(error, HeadwaterError) else _unexpected(error)
            result = CheckResult(check=check, seconds=time.perf_counter() - start, error=found)
        with self.guard:
            self.run.checks[check.name] = result
        log_check(self.run, result)
        faults.point("pipeline.check.evaluated", check.name)
        if not result.passed:
            failure = ProjectError.test_failed(result.reason, declared.where)
            entry = Entry(
                run=self.run.id,
                node=check.node,
                kind="test",
                reason=check.name,
                seconds=result.seconds,
                error=f"[{failure.code}] {failure.message}",
                mode="failed" if result.blocks else "warned",
            )
            self._record(entry)

    def _record_failure(self, one: NodeRun) -> None:
        assert one.error is not None, "it has failed"
        entry = Entry(
            run=self.run.id,
            node=one.name,
            kind=one.kind,
            reason="",
            seconds=one.seconds,
            cpu_seconds=one.cpu_seconds,
            tries=one.tries,
            error=f"[{one.error.code}] {one.error.message}",
        )
        self._record(entry)

    def _record(self, entry: Entry) -> None:
        try:
            self.ledger.failed([entry])
        except HeadwaterError as error:  # what made the node fail may keep the ledger from being written, too
            events.notice(f"the failure of {entry.node} is not in the ledger: {error.message}")

    def _is_lost(self, name: str) -> bool:
        one = self.run.nodes.get(name)
        return one is not None and one.state in ("failed", "blocked", "stopped")

    def _causes(self, name: str) -> tuple[str, ...]:
        one = self.run.nodes[name]
        return one.blocked_by if one.state == "blocked" else (name,)

    def _state(self, one: NodeRun, state: NodeState) -> None:
        one.state = state
        log_node(self.run, one)
        self.options.on_change(one)


def attach_sources(lake: Lake, graph: Graph) -> None:
    """Give the sources that lie elsewhere their names in the lake."""
    for name in graph.sources:
        location = graph.nodes[name].options.get("location")
        if location is not None and not lake.catalog.is_attached(name):
            lake.attach(name, location)


def there(node: Node, environment: Environment, artefacts: Mapping[str, str]) -> Artefact | None:
    """The artefact of a node, if the lake has it; ``artefacts`` are those that it has, each with its kind."""
    kind = artefacts.get(node.name)
    if kind is None:
        return None
    return kinds.kind(kind).open(node.name, environment)


def _unexpected(error: Exception) -> HeadwaterError:
    """An error that nobody foresaw, which is one of Headwater's."""
    made = HeadwaterError(
        "E9001", f"unexpected {type(error).__name__}: {error}", hint="run it again with --debug to see where"
    )
    made.__cause__ = error
    return made
