"""What a drawing of series over time needs: its parts as numbers, and the words around them.
`headwater.observe.chart.Chart` has it all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

from headwater.observe.ticks import Axis

__all__ = ["DECADE", "Drawn", "DrawnChart", "Scale", "logged"]

Scale = Literal["linear", "log"]
DECADE = 1_000_000
"""How far apart a number and ten times it are, as times of a logarithmic axis."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a drawing needs of a curve or band: times as whole numbers in order, and a low and a high for each."""

    label: str
    kind: str
    times: tuple[int, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]

    @property
    def there(self) -> list[float]:
        """All values that are no gaps."""
        return [v for side in {id(s): s for s in (self.low, self.high)}.values() for v in side if v is not None]


def logged(part: Drawn) -> Drawn:
    """A part by its logarithms: times in millionths of a power of ten; what is not above zero is a gap.

    >>> logged(Drawn("a", "line", (1, 100), (10.0, 0.0), (10.0, 0.0)))
    Drawn(label='a', kind='line', times=(0, 2000000), low=(1.0, None), high=(1.0, None))
    """
    times = tuple(round(math.log10(t) * DECADE) for t in part.times)
    low, high = (tuple(None if v is None or v <= 0 else math.log10(v) for v in side) for side in (part.low, part.high))
    return Drawn(part.label, part.kind, times, low, high)


class DrawnChart(Protocol):
    """A chart, as those who draw it see it."""

    title: str
    note: str
    axis: Axis
    scale: Scale
    drawn: tuple[Drawn, ...]
