"""`import headwater` is cheap: it loads no engine, and the public names are exact."""

from __future__ import annotations

import subprocess
import sys

import headwater as hw
from headwater.base import errors

ENGINES = {"datafusion", "deltalake", "duckdb", "numba", "numpy", "obstore", "pandas", "polars", "pyarrow", "pyspark"}


def loaded_after(program: str) -> set[str]:
    code = f"{program}\nimport sys\nprint('\\n'.join(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split("\n")}


def test_import_loads_no_engine() -> None:
    assert not loaded_after("import headwater") & ENGINES


def test_errors_and_settings_load_no_engine() -> None:
    assert not loaded_after("import headwater as hw; hw.HeadwaterError, hw.settings, hw.spark") & ENGINES


def test_statements_and_exports_load_no_kernels() -> None:
    assert "numba" not in loaded_after("import headwater.export, headwater.query.statements, headwater.lakehouse")


def test_import_takes_less_than_100_ms_of_cpu() -> None:
    program = "import time; t = time.process_time(); import headwater; print(time.process_time() - t)"
    runs = [subprocess.run([sys.executable, "-c", program], capture_output=True, check=True) for _ in range(3)]
    assert min(float(run.stdout) for run in runs) < 0.1


def test_exports_are_exact() -> None:
    assert hw.__all__ == sorted(hw.__all__)
    assert {name for name in hw.__all__ if name.endswith("Error")} == {
        name for name in errors.__all__ if name.endswith("Error")
    }
    for name in hw.__all__:
        assert getattr(hw, name) is not None
    assert dir(hw) == hw.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(hw, "conect")


def test_spark_is_a_function_and_a_room() -> None:
    from headwater.spark import java

    assert callable(hw.spark)
    assert getattr(hw.spark, "java") is java  # noqa: B009 (a type checker sees only the function)
