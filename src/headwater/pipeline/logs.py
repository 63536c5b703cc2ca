"""Structured logs: each event of a refresh as one line of JSON, with the id of its run.

The logger is ``headwater.pipeline``, of the standard library: whoever has logging set up gets these records like any
other, with the facts as attributes. `json_logs` writes them to a stream.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

from headwater.pipeline.checks.evaluation import CheckResult
from headwater.pipeline.run import NodeRun, Run

__all__ = ["json_logs", "log_check", "log_node", "log_run"]

_log = logging.getLogger("headwater.pipeline")
_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **{name: value for name, value in vars(record).items() if name not in _PLAIN},
        }
        return json.dumps(facts, ensure_ascii=False, default=str)


@contextmanager
def json_logs(stream: TextIO) -> Iterator[None]:
    """Write what is logged inside the block to a stream, a line of JSON each."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_JsonLines())
    level = _log.level
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)
    try:
        yield
    finally:
        _log.removeHandler(handler)
        _log.setLevel(level)


def log_node(run: Run, one: NodeRun) -> None:
    """Log that the state of a node has changed."""
    facts = {"run": run.id, "project": run.project, "node": one.name, "kind": one.kind, "state": one.state}
    if one.state in ("done", "noop", "failed"):
        facts |= {"seconds": f"{one.seconds:.3f}", "cpu_seconds": f"{one.cpu_seconds:.3f}", "tries": str(one.tries)}
    if one.refresh is not None:
        facts |= {
            "mode": one.refresh.mode,
            "rows_touched": str(one.refresh.rows_out),
            "frontier": str(one.refresh.after),
        }
    if one.error is not None:
        facts |= {"error": f"[{one.error.code}] {one.error.message}"}
    bad = one.state in ("failed", "blocked")
    _log.log(logging.WARNING if bad else logging.INFO, f"node {one.state}", extra=facts)


def log_check(run: Run, result: CheckResult) -> None:
    """Log what came of a data test."""
    facts = {"run": run.id, "project": run.project, "node": result.check.node, "test": result.check.name}
    facts |= {"severity": result.check.severity, "violations": str(result.violations)}
    if not result.passed:
        facts |= {"error": result.reason}
    level = logging.INFO if result.passed else logging.WARNING
    _log.log(level, f"test {'passed' if result.passed else 'failed'}", extra=facts)


def log_run(run: Run) -> None:
    """Log that a run has ended."""
    facts = {"run": run.id, "project": run.project, "seconds": f"{run.seconds:.3f}", "ok": run.ok}
    _log.log(logging.INFO if run.ok else logging.WARNING, run.summary(), extra=facts)
