"""The act of the online table: a server answers lookups, a payment is corrected,
and the answer says what it reflects.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.derived.reports import Verification
    from headwater.lakehouse import Lake
    from headwater.serving.client import Client

__all__ = ["ANSWER", "Answered", "answer"]

ANSWER = """CREATE ONLINE TABLE spend_online FROM spend KEY (country, merchant);
UPDATE transactions SET cents = cents + 1000 WHERE transaction_id = 11;
REFRESH ONLINE TABLE spend_online"""
_LOOKUPS = 200


@dataclass(frozen=True, slots=True)
class Answered:
    """What the server said before and after the correction, and what the table says."""

    key: tuple[str, str]
    before: dict[str, Any]
    after: dict[str, Any]
    frontiers: tuple[str, str]
    rows_out: int
    upstream: list[str]
    microseconds: float
    stored: list[dict[str, Any]]
    verified: Verification


@contextmanager
def _serving(location: str) -> Iterator[Client]:
    """A server of the lake, in a process of its own, and a client."""
    from headwater.serving.client import Client

    command = [sys.executable, "-m", "headwater.cli", "serve", location, "--port", "0", "--no-refresh"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with process.stdout, Client(url) as client:
            yield client
    finally:
        process.terminate()
        process.wait()


def answer(lake: Lake) -> Answered:
    """Serve the view, correct a payment, and ask for its country and merchant before and after the refresh."""
    create, update, refresh = ANSWER.split(";\n")
    lake.sql(create)
    found = lake.sql(
        "SELECT country, merchant FROM transactions t JOIN customers c USING (customer_id) WHERE transaction_id = 11"
    ).to_dicts()
    key = (found[0]["country"], found[0]["merchant"])
    online = lake.online("spend_online")
    with _serving(lake.location.removeprefix("file://")) as client:
        before = client.fetch("spend_online", [key])
        lake.sql(update)
        report = lake.sql(refresh).to_dicts()
        while (after := client.fetch("spend_online", [key])).frontier == before.frontier:
            time.sleep(0.001)
        seconds = []
        for _ in range(_LOOKUPS):
            start = time.perf_counter()
            client.fetch("spend_online", [key])
            seconds.append(time.perf_counter() - start)
    stored = lake.sql(
        "SELECT payments, cents, largest FROM spend WHERE country = ? AND merchant = ?", parameters=list(key)
    ).to_dicts()
    return Answered(
        key,
        before.to_pylist()[0],
        after.to_pylist()[0],
        (str(before.frontier), str(after.frontier)),
        report[0]["rows_out"],
        [row["online"] for row in report[1:]],
        median(seconds) * 1e6,
        stored,
        online.verify(),
    )
