"""Columns of text read as dictionaries: the same values, from files old and new."""

from __future__ import annotations

import pyarrow as pa

from headwater.lake.scan import read_file
from headwater.lakehouse import Lake

_CODED = pa.dictionary(pa.int32(), pa.string())


def test_values_are_the_same(lake: Lake) -> None:
    properties = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    schema = pa.schema([("id", pa.int64()), ("p", pa.string()), ("s", pa.string())])
    rows = [{"id": n, "p": "ab"[n % 2], "s": [None, "x", "yy"][n % 3]} for n in range(60)]
    table = lake.table("t").create(schema, partition_by=["p"], properties=properties)
    table.append(pa.Table.from_pylist(rows, schema))
    table.add_columns({"late": pa.string()})
    table.rename_column("s", "text")
    table.append([{"id": 60, "p": "a", "text": "zz", "late": "now"}])
    table.delete("id % 5 = 1")
    now = table.snapshot
    names = ["id", "text", "late"]
    found = []
    for file in now.files.values():
        for batch in read_file(now, file, names, coded=("text", "late")):
            assert batch.schema.field("text").type == batch.schema.field("late").type == _CODED
            found += batch.to_pylist()
    wanted = [{n: row[n] for n in names} for row in table.to_pylist()]
    assert len(wanted) == 49
    assert sorted(found, key=lambda row: row["id"]) == sorted(wanted, key=lambda row: row["id"])
