"""How much of what is random is drawn: a part of it every day, all of it by `make soak`."""

from __future__ import annotations

import os

__all__ = ["SOAK", "everyday"]

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def everyday(few: int, *, soak: int) -> int:
    """A number of steps, rows or repetitions."""
    return soak if SOAK else few
