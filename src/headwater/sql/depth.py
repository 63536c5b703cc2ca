"""How deep a text may nest: far deeper than people write, and never so deep that the process is at risk.

The parser and everything behind it recurse, about 25 frames for each level, and Python's limit of 1,000 frames is
reached by some 30 nested calls, which generated SQL has. A thread's stack of 8 MB has room for many more: `FRAMES` of
them fit, also where each passes through C. What is nested deeper still is an error of ours, and no ``RecursionError``.
"""

from __future__ import annotations

import sys

__all__ = ["FRAMES", "allow_depth"]

FRAMES = 5_000


def allow_depth() -> None:
    """Let this process recurse as deep as SQL is read; a limit that is higher already is left as it is.

    >>> allow_depth()
    >>> sys.getrecursionlimit() >= FRAMES
    True
    """
    if sys.getrecursionlimit() < FRAMES:
        sys.setrecursionlimit(FRAMES)
