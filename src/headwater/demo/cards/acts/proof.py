"""The last act: everything is computed again from the tables, and compared."""

from __future__ import annotations

from headwater.demo.act import Act, Grid
from headwater.demo.cards.stage import Stage

__all__ = ["prove"]


def prove(stage: Stage) -> Act:
    """Verify all that the project derives."""
    found = stage.lake.verify()
    rows = [(one.name, one.kind, one.state, str(one.found)) for one in found]
    return Act(
        "Proof: all of it, recomputed from the tables and compared",
        "headwater verify --all",
        grid=Grid(("artefact", "kind", "is", "in detail"), rows),
        check="every artefact is what its definition says of the tables, at the frontier that it states",
        holds=found.ok and {one.name for one in found} == set(stage.lake.artefacts()),
    )
