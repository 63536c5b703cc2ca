"""The record of a view: what every artefact's record has (`derived.record`), and two things more::

"rates": {…},                            how long things took (`costs`)
"clock": "<ISO 8601>"                    what current_timestamp() stood for; only where the policy is "full"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headwater.derived.record import Record
from headwater.incremental.views.costs import Rates

__all__ = ["ViewRecord"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRecord(Record):
    """Which sources the rows of a view reflect, which state belongs to them, and what refreshes have taken."""

    rates: Rates = field(default_factory=Rates)
    clock: datetime | None = None
    """What current_timestamp() stood for, in a view that may read the clock."""

    @classmethod
    def _own_fields(cls, found: Mapping[str, Any]) -> dict[str, Any]:
        clock = found.get("clock")
        return {
            "rates": Rates(**found["rates"]),
            "clock": None if clock is None else datetime.fromisoformat(clock),
        }

    def _own_json(self) -> dict[str, Any]:
        own: dict[str, Any] = {"rates": self.rates.to_json()}
        return own if self.clock is None else {**own, "clock": self.clock.isoformat()}
