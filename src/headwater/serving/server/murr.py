"""What Murr's own clients send and expect, where that is not what the paths of this API have anyway.

Since version 0.3 they name keys by column, in a JSON object or in an Arrow stream whose schema says in its metadata
which columns are wanted. Their answer is sparse: a row for each key that was found, and its first column, ``_idx``, is
the position of that key in the request. Older clients send an array of keys, and get a row for each of them, as
everybody else does.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from headwater.base.errors import RequestError
from headwater.serving.dtypes import dtype_name
from headwater.serving.server.answer_body import parquet_bytes
from headwater.serving.server.json_values import json_column
from headwater.serving.server.media import Form

if TYPE_CHECKING:
    from headwater.serving.server.target import Target
    from headwater.serving.version import TableVersion

__all__ = ["arrow_target", "is_sparse", "json_target", "sparse_body", "table_schema"]

_COLUMNS = b"columns"
_INDEX = "_idx"
_SPARSE = {"missing": "drop", "found": False}


def is_sparse(target: Target) -> bool:
    """Whether the answer has rows for the keys that were found, as Murr lays them out."""
    return target.murr and target.options.missing == "drop"


def json_target(target: Target, keys: Any) -> Target:
    """What a JSON body asks for, whose keys are these."""
    return target.with_fields(_SPARSE) if isinstance(keys, dict) else target


def arrow_target(target: Target, body: bytes) -> Target:
    """What an Arrow body asks for, which can be read: that is known already."""
    with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
        named = (reader.schema.metadata or {}).get(_COLUMNS)
    if named is None:
        return target
    try:
        columns = orjson.loads(named)
    except orjson.JSONDecodeError:
        columns = None
    if not isinstance(columns, list):
        raise RequestError.bad_body("Arrow", "`columns` in the metadata of its schema is no JSON array of names")
    return target.with_fields({"columns": columns, **_SPARSE})


def sparse_body(batch: pa.RecordBatch, form: Form, facts: dict[str, Any]) -> bytes:
    """An answer as Murr writes it."""
    index = batch.schema.get_field_index(_INDEX)
    others = [place for place in range(batch.num_columns) if place != index]
    names = [_INDEX, *(batch.schema.names[place] for place in others)]
    arrays = [batch.column(index).cast(pa.uint32()), *(batch.column(place) for place in others)]
    if form == "json":
        columns = {name: json_column(array) for name, array in zip(names, arrays, strict=True)}
        return orjson.dumps({"columns": columns, **facts}, option=orjson.OPT_SERIALIZE_NUMPY)
    fields = [pa.field(_INDEX, pa.uint32(), nullable=False), *(batch.schema.field(place) for place in others)]
    written = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    if form == "parquet":
        return parquet_bytes(written)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, written.schema) as writer:
        writer.write_batch(written)
    return sink.getvalue()


def table_schema(version: TableVersion) -> dict[str, Any]:
    """The columns of a table, each of which says whether it is part of the key."""
    columns = {
        f.name: {"dtype": dtype_name(f.type), "nullable": f.nullable, "key": f.name in version.key, "strict": True}
        for f in version.schema
    }
    return {"columns": columns}
