"""The status of a view: what every artefact's status has, and its query and policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.derived.status import Status
from headwater.incremental.views.definition import Policy

__all__ = ["ViewStatus"]


@dataclass(frozen=True, kw_only=True)
class ViewStatus(Status):
    """What a view is, and how fresh: its query and policy, and what every artefact has."""

    policy: Policy

    @property
    def query(self) -> str:
        """The query, in Spark SQL."""
        return self.definition

    def _own_facts(self) -> list[tuple[str, str]]:
        return [("View Text", self.query), ("Refresh Policy", self.policy)]

    def _own_dict(self) -> dict[str, Any]:
        return {"query": self.query, "policy": self.policy}
