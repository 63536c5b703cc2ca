"""How deep a text may nest: far deeper than people write, and never so deep that the process is at risk.

The parser and everything behind it recurse, some 25 frames for each level, and Python's limit of 1,000 frames is
reached by 30 nested calls, which generated SQL has. A thread's stack of 8 MB has room for many more: `FRAMES` of them
fit, also where each passes through C. The limit is raised by the first text that needs it, and stays: other threads may
be as deep by then. What is nested deeper still is an error with a code, and no ``RecursionError``.
"""

from __future__ import annotations

import sys

from sqlglot import exp

__all__ = ["FRAMES", "allow_depth", "is_deep"]

FRAMES = 5_000
_LEVELS = 60


def allow_depth() -> None:
    """Let this process recurse as deep as SQL is read; a limit that is higher already is left as it is."""
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)


def is_deep(tree: exp.Expr) -> bool:
    """Is a parsed text so deep that Python's own limit may not do for what is made of it?

    >>> from sqlglot import parse_one
    >>> is_deep(parse_one("1 + 2")), is_deep(parse_one(" + ".join("1" * 100)))
    (False, True)
    """
    nodes, levels = [tree], 0
    while nodes and levels <= _LEVELS:
        nodes = [part for node in nodes for part in node.iter_expressions()]
        levels += 1
    return bool(nodes)
