"""A process that follows a stream until it is killed: the folder of the lake is its argument; it prints "ready" once."""

from __future__ import annotations

import sys
import time

import headwater as hw
from headwater.timeseries.stream import Stream


def stream_of(lake: hw.Lake) -> Stream:
    """The stream that is followed: an as-of join, rolling values and a filter."""
    trades = lake.stream("trades", time="ts", by="sym", tiebreak="id")
    quotes = lake.stream("quotes", time="ts", by="sym", tiebreak="id").select("sym", "ts", "id", bid="price")
    joined = trades.join_asof(quotes.rename({"id": "quote"}).ordered("ts", by="sym", tiebreak="quote"))
    return joined.rolling("20s", n="count(*)", high="max(price)").filter("price > 5")


def main() -> None:
    lake = hw.connect(sys.argv[1], spark=hw.spark("local[1]", config={"spark.ui.enabled": "false"}))
    with hw.settings.override(fsync=False):
        stream_of(lake).follow("live")
        print("ready", flush=True)
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main()
