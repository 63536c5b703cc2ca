"""`headwater init --from-dbt`: what is taken works, and what is not is listed with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.base.errors import ProjectError
from headwater.pipeline.dbt.jinja import NotTaken, rendered
from headwater.pipeline.dbt.migration import migrate

FILES = {
    "dbt_project.yml": "name: jaffle\nversion: '1.0'\nvars: {least: 2}\n",
    "models/staging/stg_orders.sql": (
        "{{ config(materialized='view', tags=['daily']) }}\n{# a comment #}\n"
        "select id, customer, amount from {{ source('raw', 'orders') }} where amount >= {{ var('least') }}\n"
    ),
    "models/spend.sql": (
        "{{ config(materialized='incremental', unique_key='customer') }}\n"
        "select customer, sum(amount) as total from {{ ref('stg_orders') }} group by customer\n"
    ),
    "models/loop.sql": "select 1 as a\n{% if is_incremental() %} where 1=1 {% endif %}\n",
    "models/after_loop.sql": "select a from {{ ref('loop') }}\n",
    "models/third.sql": "select a from {{ ref('after_loop') }}\n",
    "models/call.sql": "select {{ dbt_utils.star(ref('spend')) }} from x\n",
    "models/unknown.sql": "select * from {{ ref('nowhere') }}\n",
    "models/py.py": "def model(dbt, session): ...\n",
    "models/schema.yml": """
version: 2
sources:
  - name: raw
    freshness: {error_after: {count: 12, period: hour}}
    tables:
      - name: orders
        description: "The: orders"
        columns: [{name: id, data_type: bigint}]
models:
  - name: spend
    description: What a customer has spent
    columns:
      - name: customer
        tests: [not_null, unique, {accepted_values: {values: [a, b]}}, {relationships: {to: ref('x'), field: id}}]
exposures: []
""",
    "macros/m.sql": "{% macro m() %}{% endmacro %}\n",
    "seeds/s.csv": "a\n1\n",
}


def dbt_project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_what_is_taken_works(tmp_path: Path) -> None:
    report = migrate(dbt_project(tmp_path / "dbt", FILES), tmp_path / "new")
    assert (report.models, report.sources) == (2, 1)
    lake = hw.connect(tmp_path / "new" / "lake")
    lake.write("orders", [{"id": n, "customer": "ab"[n % 2], "amount": n} for n in range(6)])
    made = hw.Project.load(tmp_path / "new")
    assert made.refresh().ok
    assert made.lake.sql("SELECT * FROM spend ORDER BY customer").to_pylist() == [
        {"customer": "a", "total": 6},
        {"customer": "b", "total": 8},
    ]
    assert made.nodes["spend"].description == "What a customer has spent"
    assert made.nodes["stg_orders"].tags == ("daily",)
    assert made.nodes["spend"].tests == (
        {"not_null": "customer"},
        {"unique": "customer"},
        {"accepted_values": {"column": "customer", "values": ["a", "b"]}},
    )
    source = made.nodes["orders"]
    assert source.description == "The: orders" and source.freshness is not None
    assert source.freshness.total_seconds() == 12 * 3600


def test_what_is_not_taken_is_listed(tmp_path: Path) -> None:
    report = migrate(dbt_project(tmp_path / "dbt", FILES), tmp_path / "new")
    said = {line.partition(": ")[0] for line in report.not_taken}
    every = {str(p.relative_to(tmp_path / "dbt")) for p in (tmp_path / "dbt").rglob("*") if p.is_file()}
    taken = {"dbt_project.yml", "models/schema.yml", "models/spend.sql", "models/staging/stg_orders.sql"}
    assert every - taken <= said
    text = "\n".join(report.not_taken)
    for reason in (
        "models/loop.sql: line 2: `{% if %}` is decided when dbt runs",
        "models/after_loop.sql: it reads `loop`, which was not taken",
        "models/third.sql: it reads `after_loop`, which was not taken",
        "models/call.sql: line 1: `{{ dbt_utils.star(ref('spend')) }}` is not a known call",
        "models/unknown.sql: line 1: it reads `nowhere`, which is no model",
        "config unique_key: a view follows inserts, updates and deletes of its sources by itself",
        "test relationships of customer",
        "models/schema.yml: exposures",
    ):
        assert reason in text, reason
    assert sorted(p.name for p in (tmp_path / "new" / "views").iterdir()) == ["spend.sql", "stg_orders.sql"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    dbt_project(tmp_path / "dbt", FILES)
    migrate(tmp_path / "dbt", tmp_path / "new")
    with pytest.raises(ProjectError, match="has files"):
        migrate(tmp_path / "dbt", tmp_path / "new")
    with pytest.raises(ProjectError, match="no dbt_project"):
        migrate(tmp_path, tmp_path / "other")


@pytest.mark.parametrize(
    "text",
    [
        "{{ x }}",
        "{{ ref(name) }}",
        "{{ ref('a') | upper }}",
        "{{ var('none') }}",
        "{{ source('a') }}",
        "{% set x = 1 %}",
    ],
)
def test_unknown_jinja(text: str) -> None:
    with pytest.raises(NotTaken, match="line 2"):
        rendered(f"select 1\n{text}", lambda name: name, lambda schema, table: table, {})
