"""Views as datasets of Spark Declarative Pipelines: the example of the guide, run by Spark's own command line against a real server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from tests.waiting import PATIENCE_S

import headwater as hw
from headwater.base import settings

from .conftest import ONE_COMPILER, free_port

if TYPE_CHECKING:
    from headwater.testing.s3_server import S3Server

    from .conftest import StartSpark

HOME = Path(pyspark.__file__).parent
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "spark-pipelines"
CHAIN = """
import os
import headwater as hw
hw.dp.materialized_view("big", "SELECT region, total FROM spend WHERE total > {least}", lake=os.environ["SHOP_LAKE"])
hw.dp.materialized_view("spend", lake=os.environ["SHOP_LAKE"], dataset="all_spend", comment="of everybody")
hw.dp.materialized_view("few", "SELECT count(*) AS n FROM big", lake=os.environ["SHOP_LAKE"])
"""


class Pipeline:
    """The example in a folder of its own, over a lake with orders."""

    def __init__(self, folder: Path, *command: str, **environment: str) -> None:
        self.folder, self.command = folder / "pipeline", command
        shutil.copytree(EXAMPLE, self.folder)
        spec = self.folder / "spark-pipeline.yml"
        spec.write_text(spec.read_text().replace("/tmp/shop-pipeline", str(folder / "storage")))
        self.lake = hw.connect(folder / "lake")
        self.lake.write("customers", pa.table({"id": range(10), "region": [f"region {i % 3}" for i in range(10)]}))
        self.lake.write("orders", pa.table({"customer": [i % 10 for i in range(200)], "amount": range(200)}))
        self.environment = {"SHOP_LAKE": self.lake.location, **environment}

    def run(self, verb: str, refused: str | None = None, **environment: str) -> str:
        done = subprocess.run(
            [*self.command, verb],
            env=os.environ | self.environment | environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=2 * PATIENCE_S,
            check=False,
        )
        if refused is not None:
            assert done.returncode != 0
            assert refused in done.stderr
            return done.stderr
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Run is COMPLETED" in done.stdout
        return done.stdout

    def spend(self) -> list[dict[str, object]]:
        query = "SELECT region, count(*) AS orders, sum(amount) AS total FROM orders JOIN customers ON customer = customers.id GROUP BY region"
        return self.lake.sql(f"SELECT region, total FROM ({query}) WHERE total >= 1000 ORDER BY region").to_pylist()


def rows_of(folder: Path) -> list[dict[str, object]]:
    """The rows that Spark has written for a dataset of its own."""
    rows: list[dict[str, object]] = pq.read_table(folder).sort_by("region").to_pylist()
    return rows


@pytest.fixture
def pipeline(start_spark: StartSpark, tmp_path: Path) -> Pipeline:
    """The example, with a Connect server whose tables lie in the folder `warehouse`."""
    port = free_port()
    options = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": ONE_COMPILER,
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    given = [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    start_spark("org.apache.spark.deploy.SparkSubmit", *given, "--class", server, "spark-internal", port=port)
    # What `spark-pipelines` starts in the end; with a remote server it needs no JVM of its own.
    command = [sys.executable, str(HOME / "pipelines" / "cli.py")]
    return Pipeline(tmp_path, *command, SPARK_REMOTE=f"sc://127.0.0.1:{port}")


@pytest.mark.long
@pytest.mark.spark
def test_a_pipeline_reads_a_view_that_is_refreshed_incrementally(pipeline: Pipeline, tmp_path: Path) -> None:
    lake, written = pipeline.lake, tmp_path / "warehouse" / "large"
    assert f"View spend of {lake.location} is refreshed: full: nothing -> customers@0 orders@0" in pipeline.run("run")
    assert rows_of(written) == pipeline.spend() != []

    before = rows_of(written)
    lake.table("orders").update({"amount": "amount + 1000"}, where="amount = 7")
    out = pipeline.run("run")
    assert "is refreshed: incremental: customers@0 orders@0 -> customers@0 orders@1, 2 rows in, 2 rows out" in out
    assert rows_of(written) == pipeline.spend() != before
    view = lake.view("spend")
    assert view.verify().equal
    assert any(file.deletion_vector is not None for file in view.table.snapshot.files.values()), "Spark read them"


@pytest.mark.slow
@pytest.mark.spark
def test_dry_runs_and_views_of_views(pipeline: Pipeline, tmp_path: Path) -> None:
    lake, written = pipeline.lake, tmp_path / "warehouse" / "few_regions"
    assert "is refreshed" not in pipeline.run("dry-run")
    assert lake.views() == []
    pipeline.run("run")

    # Views of views that are not there yet, and one by another name.
    chain = pipeline.folder / "transformations" / "chain.py"
    chain.write_text(CHAIN.format(least=5000))
    (pipeline.folder / "transformations" / "few.sql").write_text(
        "CREATE MATERIALIZED VIEW few_regions AS SELECT few.n AS region, count(*) AS c FROM few, all_spend GROUP BY few.n"
    )
    pipeline.run("dry-run")
    assert lake.views() == ["spend"]
    pipeline.run("run")
    assert set(lake.views()) == {"big", "few", "spend"}

    def expected(least: int) -> list[dict[str, object]]:
        found = lake.sql(f"SELECT count(*) AS n FROM spend WHERE total > {least}").scalar()
        return [{"region": found, "c": 3}]

    assert rows_of(written) == expected(5000)

    # Another query: a dry run leaves the view as it is.
    chain.write_text(CHAIN.format(least=7000))
    assert expected(7000) != expected(5000)
    pipeline.run("dry-run")
    assert "5000" in lake.view("big").definition
    pipeline.run("run")
    assert rows_of(written) == expected(7000)


@pytest.mark.slow
@pytest.mark.spark
def test_a_view_of_many_files(pipeline: Pipeline, tmp_path: Path) -> None:
    lake = pipeline.lake
    lake.write("many", pa.table({"id": range(300_000)}))
    with settings.override(target_file_bytes=1024, row_group_rows=1024):
        view = lake.view("numbers", "SELECT id, id % 7 AS region FROM many", refresh=True)
    lake.close()
    assert len(view.table.snapshot.files) > 32, "from there on Spark would start a job to look at them"
    transformations = pipeline.folder / "transformations"
    (transformations / "spend.py").write_text(
        'import os, headwater as hw\nhw.dp.materialized_view("numbers", lake=os.environ["SHOP_LAKE"])\n'
    )
    (transformations / "large.sql").write_text(
        "CREATE MATERIALIZED VIEW sums AS SELECT region, sum(id) AS total FROM numbers GROUP BY region"
    )
    pipeline.run("run")
    expected = lake.sql("SELECT id % 7 AS region, sum(id) AS total FROM many GROUP BY region ORDER BY region")
    assert rows_of(tmp_path / "warehouse" / "sums") == expected.to_pylist()


@pytest.mark.slow
@pytest.mark.spark
def test_what_spark_cannot_read_itself_is_refused_before_anything_is_done(pipeline: Pipeline, s3: S3Server) -> None:
    lake = hw.connect(s3.url("shop"), storage_options=s3.options)
    lake.write("customers", pipeline.lake.table("customers").to_arrow())
    lake.write("orders", pipeline.lake.table("orders").to_arrow())
    said = pipeline.run(
        "run", refused="error[E3003]: the view `spend` in a pipeline", SHOP_LAKE=lake.location, **s3.options
    )
    assert "hint: on S3, give Spark the classes of hadoop-aws" in said
    assert lake.views() == []


@pytest.mark.slow
@pytest.mark.spark
def test_the_command_of_spark(tmp_path: Path) -> None:
    pipeline = Pipeline(
        tmp_path, str(HOME / "bin" / "spark-pipelines"), PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1"
    )
    assert "is refreshed: full" in pipeline.run("run")
    assert rows_of(pipeline.folder / "spark-warehouse" / "large") == pipeline.spend() != []
    pipeline.lake.table("orders").delete("amount = 7")
    shutil.rmtree(pipeline.folder / "spark-warehouse")  # Spark has forgotten its own tables: there is no metastore
    assert "is refreshed: incremental" in pipeline.run("run")
    assert rows_of(pipeline.folder / "spark-warehouse" / "large") == pipeline.spend()


def test_the_guide_shows_the_example() -> None:
    guide = (EXAMPLE.parents[1] / "guides" / "cluster.md").read_text()
    for name in ("spend.py", "large.sql"):
        assert (
            f"```text\n# transformations/{name}\n{(EXAMPLE / 'transformations' / name).read_text()}```"
            in guide.replace("-- tr", "# tr")
        )


def test_without_a_pipeline_nothing_is_done(tmp_path: Path) -> None:
    lake = hw.connect(tmp_path)
    lake.write("orders", [{"id": 1}])
    with pytest.raises(hw.UnsupportedError, match=r"E3003.*no pipeline is being defined"):
        hw.dp.materialized_view("n", "SELECT count(*) AS n FROM orders", lake=lake)
    assert lake.views() == []
