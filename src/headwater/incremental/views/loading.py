"""Loading: the tables of a view into its circuit, the first time or from scratch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.incremental.circuit.table_load import TableLoad, can_load
from headwater.incremental.views.live import OUTPUT

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.base import events
    from headwater.derived.sources import Sources
    from headwater.incremental.circuit.circuit import Circuit
    from headwater.incremental.partitions import RunMaker
    from headwater.incremental.views.definition import Definition
    from headwater.incremental.zset import ZSet

__all__ = ["load_tables"]


def load_tables(
    circuit: Circuit,
    sources: Sources,
    definition: Definition,
    store: RunMaker,
    task: events.Task | None,
    check: Callable[[], None] = lambda: None,
) -> tuple[int, ZSet]:
    """Feed a circuit without state with all rows of its sources; how many rows that were, and the rows of the view.

    ``check`` is called every now and then, and may raise.
    """
    rows = 0
    if not can_load(circuit):
        with circuit.transaction() as transaction:
            for relation, one in definition.inputs.items():
                for batch in sources.rows(one):
                    check()
                    rows += batch.num_rows
                    circuit.inputs[relation].figures.bytes_in += batch.nbytes
                    if task is not None:
                        task.advance(batch.num_rows)
                    circuit.step({relation: batch})
        assert transaction.outputs is not None
        return rows, transaction.outputs.zset(OUTPUT)
    expected = {relation: sources.rows_of(one.table) for relation, one in definition.inputs.items()}
    with TableLoad(circuit, expected, store) as load:
        for relation in load.order:
            for batch in sources.rows(definition.inputs[relation]):
                check()
                rows += batch.num_rows
                circuit.inputs[relation].figures.bytes_in += batch.nbytes
                if task is not None:
                    task.advance(batch.num_rows)
                load.feed(relation, batch)
            load.complete(relation)
        outputs = load.finish()
    return rows, outputs.zset(OUTPUT)
