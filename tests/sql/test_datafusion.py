"""Whole queries on DataFusion: Spark's names, types and rows, or a refusal; never anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.base import settings
from headwater.base.errors import ExpressionError
from headwater.sql.datafusion import to_datafusion
from headwater.sql.plan import Limit, Plan, Project, Sort

from .datafusion_here import run_datafusion
from .oracle import FIXTURES, ask_spark_once, in_any_order, plan_of, run_spark, sections
from .test_queries import _FAILING, _QUERIES, TABLES
from .tpch import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_TPCH = sections("tpch.sql")
_MORE = [
    line for line in (FIXTURES / "datafusion.sql").read_text("utf-8").splitlines() if line and not line.startswith("#")
]


@pytest.fixture(scope="module")
def views(interpreted: SparkSession) -> SparkSession:
    for name, table in {**TABLES, **tables()}.items():
        interpreted.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)
    interpreted.conf.set("spark.sql.shuffle.partitions", "1")
    return interpreted


def _ordered(plan: Plan) -> bool:
    """Whether the rows of a plan have an order that leaves nothing open: the fixtures' LIMITs do."""
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, Limit) and isinstance(plan.child, Sort)


def _spark_refuses(session: SparkSession, text: str) -> bool:
    try:
        session.sql(text.rstrip("; "))
    except Exception as error:  # noqa: BLE001 (any of Spark's)
        return "AnalysisException" in type(error).__name__ or "ParseException" in type(error).__name__
    return False


def _outcome(text: str, session: SparkSession) -> str:
    try:
        # Some queries ask for the first row, or a list of rows in their order.
        with settings.override(threads=1):
            names, types, rows = run_datafusion(text, TABLES)
    except ExpressionError as error:
        if error.code == "E1305" or (error.code == "E1311" and _spark_refuses(session, text)):
            return "refused"
        return f"{text}\n  here fails: {error}"
    expected_names, expected_types, expected = ask_spark_once(session, text.rstrip("; "))
    if not _ordered(plan_of(text, TABLES)):
        rows, expected = in_any_order(rows), in_any_order(expected)
    if (names, types, rows) == (expected_names, expected_types, expected):
        return "equal"
    return f"{text}\n  here:  {names} {types} {rows}\n  spark: {expected_names} {expected_types} {expected}"


@pytest.mark.parametrize(("texts", "least"), [(_QUERIES, 395), (_MORE, 55)], ids=["queries", "datafusion"])
def test_queries_give_sparks_rows_or_are_refused(views: SparkSession, texts: list[str], least: int) -> None:
    outcomes = {text: _outcome(text, views) for text in texts}
    different = [o for o in outcomes.values() if o not in ("equal", "refused")]
    assert not different, "\n".join(different)
    equal = sum(o == "equal" for o in outcomes.values())
    assert equal >= least, f"{equal} of {len(texts)} equal; refused: " + "\n".join(
        t for t, o in outcomes.items() if o == "refused"
    )


@pytest.mark.parametrize("name", _TPCH)
def test_tpch_gives_sparks_rows(name: str, views: SparkSession) -> None:
    assert run_datafusion(_TPCH[name], tables()) == run_spark(views, _TPCH[name])


def test_the_order_is_sparks(views: SparkSession) -> None:
    for key in ("d", "f", "s", "a", "p", "ok", "day"):
        for direction in ("", " desc", " nulls last", " desc nulls first"):
            text = f"select {key} from t order by {key}{direction}"
            assert run_datafusion(text, TABLES)[2] == run_spark(views, text)[2], text


# Spark tries the condition of WHERE before that of ON.
_ON_IS_NO_GUARD = "select x.a from t x join u on x.a = u.k and x.a <> 2 where 4 / (x.a - 2) < 9"


@pytest.mark.parametrize("text", [*_FAILING, _ON_IS_NO_GUARD])
def test_what_fails_in_spark_fails_here_or_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        run_datafusion(text, TABLES)
    assert caught.value.code in ("E1305", "E1308")


def test_names_cannot_become_code() -> None:
    odd = 'a"; drop table t; --'
    table = {"t": TABLES["u"].rename_columns([odd, "v"])}
    text = f"select `{odd}` as `x\"y` from t where v = 'it\\'s' or `{odd}` = 1"
    assert run_datafusion(text, table)[2] == [(1,)]


def test_what_has_no_form_is_refused_with_a_hint() -> None:
    plan = plan_of("select collect_list(k) over (order by k) from one", TABLES)
    with pytest.raises(Exception, match=r"collect_list\(\) over a window in DataFusion") as caught:
        to_datafusion(plan)
    assert 'engine="duckdb"' in caught.value.hint.render("sql")  # type: ignore[attr-defined]
