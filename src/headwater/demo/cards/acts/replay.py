"""Act six: what was served is what is trained on, byte for byte, whatever was corrected since."""

from __future__ import annotations

from headwater.demo.act import Act
from headwater.demo.cards.stage import Served, Stage

__all__ = ["ask", "replay"]

KEYS = 500


def ask(stage: Stage) -> None:
    """Fetch what a service would, and log it."""
    answer = stage.lake.online("customer_online").fetch(_keys(stage))
    stage.served.append(Served(stage.now(), str(answer.frontier), bytes(answer)))


def replay(stage: Stage) -> Act:
    """Ask for every logged answer again, by its moment, after all that has happened since."""
    online = stage.lake.online("customer_online")
    again = [bytes(online.as_of(_keys(stage), known_at=one.at)) for one in stage.served]
    equal = sum(one.body == body for one, body in zip(stage.served, again, strict=True))
    different = len({one.body for one in stage.served})
    return Act(
        "Trained is served: the answers of the past, byte for byte",
        'lake.online("customer_online").as_of(keys, known_at=moment)',
        {
            "answers that were logged": len(stage.served),
            "keys in each": KEYS,
            "at the frontiers": ", ".join(one.frontier for one in stage.served),
            "of them different from each other": different,
            "equal again": equal,
        },
        check="each moment gives the bytes that were answered then, and not those of now",
        holds=equal == len(stage.served) == different > 1,
    )


def _keys(stage: Stage) -> list[int]:
    """Customers, and the one whose payment is corrected."""
    return [*range(KEYS - 1), stage.world.corrected["customer_id"]]
