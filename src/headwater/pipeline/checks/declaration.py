"""Declared checks: the ``tests:`` of a project's nodes as checks, with everything wrong about them found beforehand.

A check of a node is a view of its own, which reads the node and perhaps others. What reads the node has to wait for its
checks, and a check for all that it reads; `waits_for_itself` finds those that could never be evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from headwater.base.errors import HeadwaterError, ProjectError
from headwater.derived import kinds
from headwater.derived.outline import Outline, Shape, ShapeOf
from headwater.pipeline.checks.check import Check, CheckKind, parse_checks
from headwater.pipeline.node import Node
from headwater.sql.functions.user import UserFunction

__all__ = ["READABLE", "DeclaredCheck", "declared_checks", "outlined", "waits_for_itself", "waits_through"]

READABLE = ("source", "view", "features")
"""The kinds of node whose rows can be read by their name, and so be tested."""


@dataclass(frozen=True)
class DeclaredCheck:
    """A check, the line that declares it, and the outline of the view of its violations."""

    check: Check
    where: str
    outline: Outline | None = None

    @property
    def reads(self) -> tuple[str, ...]:
        """What its query reads; that is known when it is outlined."""
        return () if self.outline is None else tuple(self.outline.reads)


def declared_checks(node: Node) -> Iterator[DeclaredCheck | HeadwaterError]:
    """The checks of a node, and what is wrong with those that are none."""
    for test, where in zip(node.tests, node.tests_at, strict=True):
        if node.kind not in READABLE:
            why = f"`{node.name}` has no rows that a query could read; test what it is made of"
            yield ProjectError.unsupported_setting("tests", why, where)
            continue
        kind = test if isinstance(test, str) else next(iter(test), "") if isinstance(test, Mapping) else ""
        if kind and kind not in get_args(CheckKind):
            yield ProjectError.unknown_test(str(kind), get_args(CheckKind), where)
            continue
        try:
            yield DeclaredCheck(parse_checks(node.name, [test])[0], where)
        except HeadwaterError as error:
            yield ProjectError.bad_test(node.name, error.message, error.hint, where)


def outlined(declared: DeclaredCheck, shape_of: ShapeOf, functions: Mapping[str, UserFunction]) -> DeclaredCheck:
    """The check with what it reads; raises for columns and relations that are not there."""
    check = declared.check
    if check.column is not None:
        _has(shape_of(check.node), check.column, declared.where)
    if check.to:
        _has(shape_of(check.to), check.field, declared.where)
    try:
        outline = kinds.kind("view").outline(check.view, {"sql": check.violations}, shape_of, functions)
    except ProjectError:
        raise
    except HeadwaterError as error:
        error.where = f"{declared.where}\n         {error.where}" if error.where else declared.where
        raise
    return DeclaredCheck(check, declared.where, outline)


def _has(shape: Shape, column: str, where: str) -> None:
    known = list(shape.schema.names)
    if column.lower() not in (name.lower() for name in known):
        raise ProjectError.test_column(shape.name, column, known, where)


def waits_for_itself(checks: Iterable[DeclaredCheck], reads: Callable[[str], Sequence[str]]) -> Iterator[ProjectError]:
    """The checks that read something which is only refreshed when they have passed."""
    listed = list(checks)
    of: dict[str, list[DeclaredCheck]] = {}
    for one in listed:
        of.setdefault(one.check.node, []).append(one)
    for one in listed:
        name = waits_through(
            one.check.node, one.reads, reads, lambda node: [r for check in of.get(node, ()) for r in check.reads]
        )
        if name is not None:
            yield ProjectError.test_cycle(one.check.name, one.check.node, name, one.where)


def waits_through(
    node: str,
    reads: Iterable[str],
    reads_of: Callable[[str], Sequence[str]],
    tests_read: Callable[[str], Sequence[str]],
) -> str | None:
    """Through which node a test of ``node`` waits for itself; None if it does not.

    ``reads`` are what the test reads, ``reads_of`` says so of nodes, and ``tests_read`` of all tests of a node.
    """
    seen: set[str] = set()
    waiting = list(reads)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for read in reads_of(name):
            if read == node:
                return name
            waiting += [read, *tests_read(read)]
    return None
