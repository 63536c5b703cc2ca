"""What a drawing of series over time needs: its parts as numbers, and the words around them.
`headwater.observe.chart.Chart` has it all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headwater.observe.ticks import Axis

__all__ = ["Drawn", "DrawnChart"]


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


class DrawnChart(Protocol):
    """A chart, as those who draw it see it."""

    title: str
    note: str
    axis: Axis
    drawn: tuple[Drawn, ...]
