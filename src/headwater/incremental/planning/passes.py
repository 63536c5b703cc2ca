"""Which window functions one operator computes together, in one pass over a partition."""

from __future__ import annotations

from headwater.sql.nodes import WindowCall

__all__ = ["RANKS", "pass_of"]

RANKS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile")


def pass_of(call: WindowCall) -> str:
    """The name of the pass: functions of the same one, with the same partition and order, are one operator."""
    if call.op in RANKS:
        # A column that looks at the number of rows makes the whole partition be read: it should not be in one node with
        # the others.
        return "places" if call.op in RANKS[:3] else "shares"
    return "lag" if call.op in ("lag", "lead") else f"frame {call.frame!r}"
