"""First use: how long a fresh installation takes to its first rows, with an empty cache of kernels.

    make wheel
    python benchmarks/first_use.py --wheel dist/*.whl        # a new environment with the wheel; takes minutes to install
    python benchmarks/first_use.py --python .venv/bin/python  # an environment that is there, as from a source checkout

Each case is a new process. Its clock starts before Python does, and stops when the rows have been read. CPU seconds are those of the process and
of all that it started (Java, compilers). The answer is checked before a figure is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_TABLES = """
import sys
import numpy as np, pyarrow as pa
import headwater as hw
lake = hw.connect(sys.argv[1])
rng, n = np.random.default_rng(1), 1_000_000
lake.write("orders", pa.table({"id": np.arange(n), "customer": rng.integers(0, 20_000, n), "amount": rng.integers(1, 500, n)}))
lake.write("customers", pa.table({"id": np.arange(20_000), "country": np.char.add("c", (np.arange(20_000) % 50).astype(str))}))
n = 200_000
for name, column in (("trades", "size"), ("quotes", "bid")):
    ts = np.sort(rng.integers(0, 86_400_000_000, n)).astype("datetime64[us]")
    symbols = np.char.add("s", rng.integers(0, 100, n).astype(str))
    lake.write(name, pa.table({"symbol": symbols, "ts": pa.array(ts), "n": np.arange(n), column: rng.random(n)}))
"""
_VIEW = """
import sys
import headwater as hw
lake = hw.connect(sys.argv[1])
view = lake.view("v", {sql!r})
view.refresh()
assert view.to_arrow().num_rows == {rows}
"""
_STREAM = """
import sys
import headwater as hw
lake = hw.connect(sys.argv[1])
trades = lake.stream("trades", time="ts", by="symbol", tiebreak="n")
quotes = lake.stream("quotes", time="ts", by="symbol", tiebreak="n").select("symbol", "ts", "n", "bid")
assert {expression}.collect().num_rows == 200_000
"""
_CASES = {
    "view, group": _VIEW.format(
        sql="SELECT customer, count(*) AS n, sum(amount) AS s FROM orders GROUP BY customer", rows=20_000
    ),
    "view, join and group": _VIEW.format(
        sql="SELECT country, count(*) AS n, max(amount) AS m FROM orders o JOIN customers c ON o.customer = c.id GROUP BY country",
        rows=50,
    ),
    "view, first three": _VIEW.format(
        sql="SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY amount DESC, id) AS r FROM orders) WHERE r <= 3",
        rows=60_000,
    ),
    "stream, as-of join": _STREAM.format(expression="trades.join_asof(quotes)"),
    "stream, rolling": _STREAM.format(expression='trades.rolling("1h", total="sum(size)")'),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="install this into a new environment")
    parser.add_argument("--python", type=Path, default=Path(sys.executable), help="or use this one (default: this)")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headwater-first-use-") as scratch:
        folder = Path(scratch)
        python = _installed(arguments.wheel, folder / "venv") if arguments.wheel else arguments.python.absolute()
        _run(python, _TABLES, folder / "lake", folder / "cache of another")
        figures = {}
        for name, program in _CASES.items():
            if arguments.only not in name:
                continue
            for number in range(arguments.rounds):
                lake = folder / f"{name} {number}"
                subprocess.run(["cp", "-r", str(folder / "lake"), str(lake)], check=True)
                wall, cpu = _run(python, program, lake, folder / f"cache {name} {number}")
                figures.setdefault(name, []).append({"wall_s": round(wall, 2), "cpu_s": round(cpu, 2)})
                print(f"{name:<24} {wall:6.1f} s  {cpu:6.1f} CPU s", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2))


def _installed(wheel: Path, folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", f"{wheel.absolute()}[spark]"], check=True)
    return python


def _run(python: Path, program: str, lake: Path, cache: Path) -> tuple[float, float]:
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"XDG_CACHE_HOME": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([python, "-c", program, str(lake)], env=environment, check=True, cwd=lake.parent)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
