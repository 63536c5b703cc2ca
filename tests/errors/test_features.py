"""Feature tables that cannot be computed, training sets that cannot be told, and answers of a past that is lost."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from headwater.lakehouse import Lake

Attempt = Callable[[], Any]
AT = datetime(2026, 1, 1, tzinfo=UTC)
SOON = datetime(2100, 1, 1, tzinfo=UTC)


def payments(lake: Lake) -> Any:
    return lake.write("payments", pa.table({"card": ["a"], "ts": [AT], "amount": [5]}))


def velocity(lake: Any) -> Any:
    return lake.stream("payments", time="ts", by="card").rolling("1h", n="count(*)")


def total(lake: Any) -> Any:
    return lake.stream("payments").agg(n="count(*)")


def case_a_feature_table_that_is_not_there(lake: Lake) -> Attempt:
    payments(lake)
    lake.features("velocity", velocity)
    return lambda: lake.features("velosity")


def case_a_feature_table_of_a_function_that_is_elsewhere(lake: Lake) -> Attempt:
    from headwater.timeseries.features.function import forget

    def inner(lake: Any) -> Any:
        return velocity(lake)

    payments(lake)
    table = lake.features("velocity", inner)
    forget(lake.catalog.root.url, "velocity")
    return table.plan


def case_a_feature_table_that_gives_no_stream(lake: Lake) -> Attempt:
    payments(lake)
    return lambda: lake.features("velocity", len)


def case_a_feature_table_of_an_old_version(lake: Lake) -> Attempt:
    payments(lake)
    return lambda: lake.features("velocity", lambda lake: lake.stream("payments", version=0))


def case_a_feature_table_of_no_table(lake: Lake) -> Attempt:
    def build(lake: Any) -> Any:
        return lake.stream(pa.table({"a": [1]}))

    return lambda: lake.features("velocity", build)


def case_a_feature_table_of_another_lake_s_stream(lake: Lake) -> Attempt:
    payments(lake)
    outer = lake

    def build(lake: Any) -> Any:
        del lake
        return outer.stream("payments")

    return lambda: lake.features("velocity", build)


def case_a_feature_table_that_reads_the_clock(lake: Lake) -> Attempt:
    payments(lake)

    def build(lake: Any) -> Any:
        recent = lake.stream("payments", time="ts", by="card").filter("ts > current_date() - INTERVAL 1 DAY")
        return recent.rolling("1h", n="count(*)")

    return lambda: lake.features("velocity", build)


def case_a_strict_feature_table_over_all_rows(lake: Lake) -> Attempt:
    table = payments(lake)
    found = lake.features("total", total, policy="strict", refresh=True)
    table.append(pa.table({"card": ["b"], "ts": [AT], "amount": [5]}))
    return found.refresh


def case_a_feature_table_in_a_statement(lake: Lake) -> Attempt:
    payments(lake)
    lake.features("velocity", velocity, refresh=True)
    return lambda: lake.sql("DELETE FROM velocity WHERE n = 1")


def case_a_training_set_over_what_has_no_history(lake: Lake) -> Attempt:
    payments(lake)
    labels = pa.table({"card": ["a"], "ts": [AT]})
    rolled = lake.stream("payments", time="ts", by="card").rolling("1h", n="count(*)")
    return lambda: lake.training_set(labels, rolled, time="ts", by="card", known_at=SOON)


def case_a_training_set_of_a_moment_that_was_vacuumed(lake: Lake) -> Attempt:
    table = lake.table("payments")
    rows = pa.table({"card": ["a"], "ts": [AT], "amount": [5]})
    table.create(rows.schema, data=rows, properties={"delta.enableDeletionVectors": "false"})
    time.sleep(0.002)
    then = datetime.now(UTC)
    time.sleep(0.002)
    table.update({"amount": "6"})
    table.vacuum(retention_hours=0, enforce_retention=False)
    labels = pa.table({"card": ["a"], "ts": [AT]})
    moment = then.replace(microsecond=then.microsecond // 1000 * 1000)
    return lambda: lake.training_set(labels, "payments", time="ts", by="card", known_at=moment)


def case_a_training_set_without_a_time(lake: Lake) -> Attempt:
    payments(lake)
    return lambda: lake.training_set(pa.table({"card": ["a"]}), "payments", by="card")


def case_a_training_set_whose_labels_lack_a_key(lake: Lake) -> Attempt:
    payments(lake)
    scores = lake.stream("payments", time="ts", by="card")
    return lambda: lake.training_set(pa.table({"ts": [AT]}), scores, time="ts")


def case_an_answer_before_anything_was_published(lake: Lake) -> Attempt:
    lake.write("spend", pa.table({"id": [1], "total": [5]}))
    online = lake.online("features", "spend", key="id", refresh=True)
    return lambda: online.as_of([1], known_at="2020-01-01")


def case_an_answer_at_no_moment(lake: Lake) -> Attempt:
    lake.write("spend", pa.table({"id": [1], "total": [5]}))
    online = lake.online("features", "spend", key="id", refresh=True)
    return lambda: online.as_of([1], known_at="yesterday")


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    catalogue.check(case)
