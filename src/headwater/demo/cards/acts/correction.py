"""Act three: one payment is corrected, and followed through everything that is derived from it."""

from __future__ import annotations

from headwater.demo.act import Act, Grid
from headwater.demo.cards.stage import Stage

__all__ = ["CORRECTED_CENTS", "correct"]

CORRECTED_CENTS = 1
_UPDATE = "UPDATE transactions SET cents = 1, status = 'corrected' WHERE transaction_id = {payment}"


def correct(stage: Stage) -> Act:
    """Correct the payment of a note, refresh, and trace it."""
    lake, project = stage.lake, stage.project
    payment, customer = (stage.world.corrected[name] for name in ("transaction_id", "customer_id"))
    before = int(
        lake.sql("SELECT cents FROM transactions WHERE transaction_id = :id", parameters={"id": payment}).scalar()
    )
    online, index = lake.online("customer_online"), lake.index("case_search")
    answered = online.fetch([customer], ["cents"]).to_pylist()[0]["cents"]
    found_before = index.count("status:corrected")
    statement = _UPDATE.format(payment=payment)
    lake.sql(statement)
    run = project.refresh()
    way = lake.trace("transactions", {"transaction_id": payment})
    answer = online.fetch([customer], ["cents"])
    found = index.search("status:corrected", columns=["transaction_id"]).to_pylist()
    rows = [
        (
            one.name,
            one.kind,
            str(one.steps[-1].rows[0]) if one.steps and one.steps[-1].rows else "",
            one.steps[-1].method,
        )
        for one in way.nodes
        if one.steps
    ]
    return Act(
        "One correction, everywhere: a payment of weeks ago, traced from the table to the online answer",
        f"{statement};\nheadwater refresh; headwater trace transactions transaction_id={payment}",
        {
            "rows touched": ", ".join(f"{one.name}: {one.touched}" for one in run.values() if one.touched),
            "the online answer": f"{answered:,} -> {answer.to_pylist()[0]['cents']:,} cents, at {answer.frontier}",
            "the search": f"{found_before} -> {len(found)} corrected case",
        },
        Grid(("artefact", "kind", "what changed there", "found by"), rows),
        check=f"{before - CORRECTED_CENTS:,} cents less in the online answer, one hit more, and all on the way",
        holds=run.ok
        and all(one.refresh is not None and one.refresh.mode in ("incremental", "noop") for one in run.values())
        and answer.to_pylist()[0]["cents"] == answered - before + CORRECTED_CENTS
        and found_before == 0
        and found == [{"transaction_id": payment}]
        and {"transactions", "customer_spend", "merchant_day", "cases", "velocity", "case_search", "customer_online"}
        <= {one.name for one in way.nodes if one.steps or one.found},
    )
