"""Act two: a day lands, with payments that come late and chargebacks of weeks ago."""

from __future__ import annotations

from headwater.demo.act import Act, Grid
from headwater.demo.cards.stage import Stage

__all__ = ["land"]


def land(stage: Stage) -> Act:
    """Append a day, look at the plan, and refresh."""
    world, project, lake = stage.world, stage.project, stage.lake
    lake.table("transactions").append(world.day.transactions)
    lake.table("chargebacks").append(world.day.chargebacks)
    plan = project.plan()
    planned = {name: one.mode for name, one in plan.items()}
    run = project.refresh()
    cpu = sum(one.cpu_seconds for one in run.nodes.values())
    payments = int(lake.sql("SELECT sum(payments) FROM customer_spend").scalar())
    rows = [
        (name, planned[name], "-" if one.refresh is None else one.refresh.mode, one.touched)
        for name, one in run.nodes.items()
    ]
    return Act(
        "A day lands: late payments, chargebacks of weeks ago, and nothing is built again",
        "headwater plan; headwater refresh",
        {
            "payments that came": world.planted.day_payments,
            "chargebacks that came": world.day.chargebacks.num_rows,
            "plan": plan.summary(),
            "CPU of building (without Spark's), and of this": f"{stage.build_cpu_seconds:.2f} s, {cpu:.2f} s",
        },
        Grid(("node", "planned", "done", "rows"), rows),
        check=f"the plan said so for every node, and {payments:,} payments are those of both",
        holds=run.ok
        and "full" not in planned.values()
        and all(one.refresh is not None and one.refresh.mode in ("incremental", "noop") for one in run.values())
        and payments == world.planted.payments + world.planted.day_payments,
    )
