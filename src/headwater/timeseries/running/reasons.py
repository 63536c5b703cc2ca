"""Why a plan runs as it does, in the words of `explain`."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.timeseries.node import Keyed, Node
from headwater.timeseries.slices import HotKey
from headwater.timeseries.sources.source import Size

__all__ = ["OWN_FORM", "amount", "exchange_reasons"]

OWN_FORM = "it means the same, and costs less"
_UNITS = ("bytes", "kB", "MB", "GB", "TB")


def amount(size: int) -> str:
    """Bytes as people say them.

    >>> amount(0), amount(2_300), amount(8 << 20), amount(31_000_000_000)
    ('0 bytes', '2.3 kB', '8.4 MB', '31 GB')
    """
    number, unit = float(size), 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.1f} {_UNITS[unit]}" if unit and number < 10 else f"{number:.0f} {_UNITS[unit]}"


def exchange_reasons(
    node: Keyed, sizes: Sequence[Size], hot: Sequence[HotKey], given_bytes: int, other_meaning: str | None
) -> str:
    """Why rows are exchanged for an operator of ours, and in this way.

    Parameters
    ----------
    sizes
        Of its inputs, as far as they are known.
    hot
        The keys that are cut by time.
    given_bytes
        A side that is smaller would have been given to every task.
    other_meaning
        The setting of the session by which Spark's own form would mean something else.
    """
    found = []
    if type(node).frame is not Node.frame and other_meaning is not None:
        found.append(f"Spark's own form means something else with {other_meaning}")
    if not any(node.keys()):
        found.append("nothing tells one series from another" + (", and there are too many rows for one" if hot else ""))
    elif node.takes_whole_second:
        found.append(_other_side(sizes[1], given_bytes))
    elif all(s.bytes is not None for s in sizes):
        found.append(f"there are about {amount(sum(s.bytes or 0 for s in sizes))}")
    else:
        found.append("how much there is is not known before it runs")
    if hot and any(node.keys()):
        share = f"{max(h.share for h in hot):.0%} of the rows"
        found.append(f"one key has {share}" if len(hot) == 1 else f"some keys have up to {share} each")
    return ", and ".join(found)


def _other_side(size: Size, given_bytes: int) -> str:
    if size.bytes is None or size.bytes <= given_bytes:
        return "the other side is not known to be small before it runs"
    rows = "" if size.rows is None else f"{size.rows:,} rows, "
    return (
        f"the other side has {rows}about {amount(size.bytes)}: more than {amount(given_bytes)} is not "
        "given to every task"
    )
