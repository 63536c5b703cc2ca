"""How much of Spark SQL is answered: the examples in Spark's own documentation of its functions, asked there and here.

Prints the examples that have no answer, or another one, and the table that `docs/functions.md` shows. ``make bench ARGS="functions"``
runs it, or::

    python benchmarks/functions.py --every 10
"""

from __future__ import annotations

import argparse
import tempfile

import headwater as hw
from headwater.testing.spark_examples import Outcome, answer_of_spark, figures, outcome, read_examples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="only each so-manieth example")
    given = parser.parse_args()
    session = hw.spark("local[2]")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    found: list[tuple[str | None, Outcome]] = []
    with tempfile.TemporaryDirectory() as folder, hw.connect(folder) as lake:
        for example in read_examples(session)[:: given.every]:
            expected = answer_of_spark(session, example)
            if expected is None:
                continue
            said, why = outcome(lambda text: lake.sql(text).to_arrow(), example, expected)
            found.append((example.family, said))
            if said != "right" and example.family is None:
                print(f"{said}: {example.function}: {example.text}\n  {why}", flush=True)
    print(figures(found))


if __name__ == "__main__":
    main()
