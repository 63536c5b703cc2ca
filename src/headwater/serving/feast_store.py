"""An online store for Feast: feature views as online tables, on a server or in a folder.

In ``feature_store.yaml``::

    online_store:
      type: headwater.serving.feast_store.HeadwaterOnlineStore
      url: http://127.0.0.1:8080      # a server, with a token that may read, write and administrate
      token: secret
      # or, in this process, without a server:
      # path: data/online

The problem: Feast hands over values one by one, as messages, and most stores keep them as such; then only Feast can
read them. The idea: a feature view becomes a table with a column of its own type for each feature, by its join keys, so
that `headwater.Client` reads what Feast has written, as numbers. The table of the view ``stats`` in the project
``shop`` is called ``shop.stats``.

How a value is stored, by the type that the feature view declares:

    INT32 INT64 FLOAT DOUBLE BOOL     the same types of Arrow
    STRING JSON UUID DECIMAL          utf8
    BYTES                             binary
    UNIX_TIMESTAMP                    timestamp(s,UTC)
    lists of INT32 INT64 FLOAT DOUBLE lists
    everything else                   binary: the message itself, serialised

Invariants: a row is written whole, and of several rows of one key in a batch the last one counts. A feature view whose
columns have changed is refused, since its rows would be lost, unless ``on_schema_change: recreate`` says that they may
be. Feast is imported when one of the two classes is asked for, not before.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from headwater.base.errors import InputError, SchemaError
from headwater.base.packages import required
from headwater.serving.dtypes import dtype_name
from headwater.serving.feast_tables import FolderBacking, ServerBacking, TableBacking
from headwater.serving.reserved import RESERVED

if TYPE_CHECKING:
    from headwater.serving.answer import Answer

__all__ = ["FeastMethods"]

EVENT_TIME = "feast_event_timestamp"
_TIME = pa.timestamp("us", "UTC")
_BATCH_ROWS = 50_000
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# The field of Feast's message and the type of Arrow, by the name of the declared type.
_STORED: dict[str, tuple[str, pa.DataType]] = {
    "INT32": ("int32_val", pa.int32()),
    "INT64": ("int64_val", pa.int64()),
    "FLOAT": ("float_val", pa.float32()),
    "DOUBLE": ("double_val", pa.float64()),
    "BOOL": ("bool_val", pa.bool_()),
    "STRING": ("string_val", pa.utf8()),
    "JSON": ("json_val", pa.utf8()),
    "UUID": ("uuid_val", pa.utf8()),
    "TIME_UUID": ("time_uuid_val", pa.utf8()),
    "DECIMAL": ("decimal_val", pa.utf8()),
    "BYTES": ("bytes_val", pa.binary()),
    "PDF_BYTES": ("bytes_val", pa.binary()),
    "IMAGE_BYTES": ("bytes_val", pa.binary()),
    "UNIX_TIMESTAMP": ("unix_timestamp_val", pa.timestamp("s", "UTC")),
    "INT32_LIST": ("int32_list_val", pa.list_(pa.int32())),
    "INT64_LIST": ("int64_list_val", pa.list_(pa.int64())),
    "FLOAT_LIST": ("float_list_val", pa.list_(pa.float32())),
    "DOUBLE_LIST": ("double_list_val", pa.list_(pa.float64())),
}
_MESSAGE = ("", pa.binary())

Row = tuple[Any, Mapping[str, Any], datetime, datetime | None]
"""What Feast hands over: the key, the values, when they were true and when they were made."""


class FeastColumn:
    """A join key or a feature: its name here, and how its values go from messages to Arrow and back."""

    def __init__(self, name: str, declared: str) -> None:
        self.feature = name
        self.name = f"feast{name}" if name.startswith("_") or name in RESERVED else name
        self.field, self.type = _STORED.get(declared, _MESSAGE)

    def array(self, values: Iterable[Any]) -> pa.Array:
        """Messages as a column; None is a value that is not there."""
        try:
            return pa.array([None if value is None else self._stored(value) for value in values], self.type)
        except (pa.ArrowException, TypeError, OverflowError) as error:
            why = str(error).partition("\n")[0]
            raise SchemaError.feature_values(self.feature, str(self.type), why) from None

    def _stored(self, value: Any) -> Any:
        which = value.WhichOneof("val")
        if which is None or which == "null_val":
            return None
        if not self.field:
            return value.SerializeToString()
        found = getattr(value, which)
        return list(found.val) if which.endswith("_list_val") else found

    def messages(self, column: pa.Array, message: Any) -> list[Any]:
        """A column as messages; a null is a message without a value."""
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        values = column.to_pylist()
        if not self.field:
            return [message() if value is None else message.FromString(value) for value in values]
        if self.field.endswith("_list_val"):
            return [message() if value is None else message(**{self.field: {"val": value}}) for value in values]
        return [message() if value is None else message(**{self.field: value}) for value in values]


class FeastView:
    """A feature view as a table: its name, its join keys and features as columns."""

    def __init__(self, project: str, view: Any) -> None:
        self.table = f"{_part(project)}.{_part(view.name)}"
        self.keys = [FeastColumn(field.name, _declared(field)) for field in view.entity_columns]
        self.features = [FeastColumn(field.name, _declared(field)) for field in view.features]
        if not self.keys:
            raise InputError.bad_argument("feature view", view.name, "one whose entities are known: run feast apply")

    @property
    def key(self) -> list[str]:
        return [column.name for column in self.keys]

    @property
    def schema(self) -> pa.Schema:
        keys = [pa.field(column.name, column.type, nullable=False) for column in self.keys]
        features = [pa.field(column.name, column.type) for column in self.features]
        return pa.schema([*keys, *features, pa.field(EVENT_TIME, _TIME)])

    @property
    def dtypes(self) -> dict[str, str]:
        return {field.name: dtype_name(field.type) for field in self.schema}

    def key_table(self, entity_keys: Sequence[Any]) -> pa.Table:
        """The keys that Feast asks for."""
        named = [dict(zip(key.join_keys, key.entity_values, strict=True)) for key in entity_keys]
        try:
            arrays = [column.array([key[column.feature] for key in named]) for column in self.keys]
        except KeyError as missing:
            raise InputError.bad_argument(
                "entity keys", str(missing), ", ".join(c.feature for c in self.keys)
            ) from None
        return pa.table(dict(zip(self.key, arrays, strict=True)))

    def rows(self, data: Sequence[Row]) -> pa.Table:
        """What Feast writes, each key once: the last row counts."""
        last = {row[0].SerializeToString(deterministic=True): row for row in data}
        kept = list(last.values())
        table = self.key_table([row[0] for row in kept])
        for column in self.features:
            table = table.append_column(column.name, column.array([row[1].get(column.feature) for row in kept]))
        return table.append_column(EVENT_TIME, pa.array([_utc(row[2]) for row in kept], _TIME))

    def columns(self, requested: Sequence[str] | None) -> list[FeastColumn]:
        """The features that are asked for; those that the view does not have are left out, as they have no values."""
        return [one for one in self.features if requested is None or one.feature in set(requested)]

    def results(self, answer: Answer, columns: Sequence[FeastColumn]) -> list[tuple[datetime | None, Any]]:
        """What Feast wants to have: for each key the event time and the values, or None twice."""
        from feast.protos.feast.types.Value_pb2 import Value

        times = answer[EVENT_TIME].to_pylist()
        lists = [column.messages(answer[column.name], Value) for column in columns]
        names = [column.feature for column in columns]
        return [
            (times[row], dict(zip(names, [values[row] for values in lists], strict=True))) if found else (None, None)
            for row, found in enumerate(answer.found.tolist())
        ]


class FeastMethods:
    """What `HeadwaterOnlineStore` does; that class itself is made of this one and Feast's, when it is asked for."""

    _backings: dict[tuple[Any, ...], TableBacking]

    def _backing(self, config: Any) -> TableBacking:
        given = config.online_store
        path = given.path
        if path is not None and config.repo_path is not None and "://" not in path:
            path = str(config.repo_path / path)
        kept: dict[tuple[Any, ...], TableBacking] = self.__dict__.setdefault("_backings", {})
        which = (given.url, given.token, given.timeout, path)
        if which not in kept:
            kept[which] = FolderBacking(path) if path else ServerBacking(given.url, given.token, given.timeout)
        return kept[which]

    def online_write_batch(
        self, config: Any, table: Any, data: Sequence[Row], progress: Callable[[int], Any] | None
    ) -> None:
        view, backing = FeastView(config.project, table), self._backing(config)
        for at in range(0, len(data), _BATCH_ROWS):
            part = data[at : at + _BATCH_ROWS]
            backing.write(view.table, view.rows(part))
            if progress is not None:
                progress(len(part))

    def online_read(
        self, config: Any, table: Any, entity_keys: Sequence[Any], requested_features: Sequence[str] | None = None
    ) -> list[tuple[datetime | None, Any]]:
        view = FeastView(config.project, table)
        columns = view.columns(requested_features)
        asked = [*(column.name for column in columns), EVENT_TIME]
        return view.results(self._backing(config).fetch(view.table, view.key_table(entity_keys), asked), columns)

    @property
    def async_supported(self) -> Any:
        from feast.infra.supported_async_methods import SupportedAsyncMethods

        return SupportedAsyncMethods(read=True, write=True)

    async def online_write_batch_async(
        self, config: Any, table: Any, data: Sequence[Row], progress: Callable[[int], Any] | None
    ) -> None:
        await asyncio.to_thread(self.online_write_batch, config, table, data, progress)

    async def online_read_async(
        self, config: Any, table: Any, entity_keys: Sequence[Any], requested_features: Sequence[str] | None = None
    ) -> list[tuple[datetime | None, Any]]:
        view = FeastView(config.project, table)
        columns = view.columns(requested_features)
        asked = [*(column.name for column in columns), EVENT_TIME]
        answer = await self._backing(config).fetch_async(view.table, view.key_table(entity_keys), asked)
        return view.results(answer, columns)

    def update(
        self,
        config: Any,
        tables_to_delete: Sequence[Any],
        tables_to_keep: Sequence[Any],
        entities_to_delete: Sequence[Any],
        entities_to_keep: Sequence[Any],
        partial: bool,
    ) -> None:
        backing = self._backing(config)
        for table in tables_to_keep:
            view = FeastView(config.project, table)
            have = backing.definition(view.table)
            if have is not None and have != (view.key, view.dtypes):
                if config.online_store.on_schema_change != "recreate":
                    raise SchemaError.feature_view_changed(view.table, _difference(have, (view.key, view.dtypes)))
                backing.drop(view.table)
                have = None
            if have is None:
                backing.create(view.table, view.key, view.schema, EVENT_TIME)
        for table in tables_to_delete:
            backing.drop(f"{_part(config.project)}.{_part(table.name)}")

    def teardown(self, config: Any, tables: Sequence[Any], entities: Sequence[Any]) -> None:
        backing = self._backing(config)
        for table in tables:
            backing.drop(f"{_part(config.project)}.{_part(table.name)}")
        self._close()

    async def close(self) -> None:
        """Close the connections: Feast calls it when its server stops."""
        for backing in self.__dict__.get("_backings", {}).values():
            await backing.close_async()
        self._close()

    def _close(self) -> None:
        for backing in self.__dict__.pop("_backings", {}).values():
            backing.close()


def _declared(field: Any) -> str:
    name: str = field.dtype.to_value_type().name
    return name


def _part(name: str) -> str:
    """A name as a part of a table's name: another character than a letter, a digit or _ makes it a name with a hash.

    >>> _part("driver_stats"), _part("driver-stats")
    ('driver_stats', 't_driver_stats_80730c9d')
    """
    if _PLAIN.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"t_{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{digest}"


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _difference(have: tuple[list[str], dict[str, str]], want: tuple[list[str], dict[str, str]]) -> str:
    if have[0] != want[0]:
        return f"its join keys were {', '.join(have[0])}"
    added = [name for name in want[1] if name not in have[1]]
    gone = [name for name in have[1] if name not in want[1]]
    other = [f"{name} was {have[1][name]}" for name in want[1] if have[1].get(name, want[1][name]) != want[1][name]]
    said = [f"added {', '.join(added)}"] if added else []
    said += [f"removed {', '.join(gone)}"] if gone else []
    return "; ".join([*said, *other])


def _made() -> dict[str, type]:
    """The classes that Feast looks for, on top of its own."""
    required("feast", "the online store for Feast")
    from feast.infra.online_stores.online_store import OnlineStore
    from feast.repo_config import FeastConfigBaseModel
    from pydantic import StrictStr, model_validator

    class HeadwaterOnlineStoreConfig(FeastConfigBaseModel):  # type: ignore[misc,unused-ignore]
        """Where the online tables are: on a server (``url``) or in a folder (``path``)."""

        type: Literal["headwater.serving.feast_store.HeadwaterOnlineStore"] = (
            "headwater.serving.feast_store.HeadwaterOnlineStore"
        )
        url: StrictStr | None = None
        """The address of a server: http://127.0.0.1:8080."""
        token: StrictStr | None = None
        """A token that may read, write and administrate."""
        timeout: float = 10.0
        """How many seconds a call to the server may take."""
        path: StrictStr | None = None
        """A folder, or s3://bucket/prefix, that is read and written without a server."""
        on_schema_change: Literal["refuse", "recreate"] = "refuse"
        """What happens to a feature view whose columns have changed: an error, or a new table without rows."""

        @model_validator(mode="after")
        def _one_place(self) -> Any:
            if (self.url is None) == (self.path is None):
                raise ValueError("give either url, the address of a server, or path, a folder")
            return self

    class HeadwaterOnlineStore(FeastMethods, OnlineStore):  # type: ignore[misc,unused-ignore]
        """Feature views as online tables of Headwater."""

    made: dict[str, type] = {one.__name__: one for one in (HeadwaterOnlineStoreConfig, HeadwaterOnlineStore)}
    for one in made.values():
        one.__module__, one.__qualname__ = __name__, one.__name__
    return made


def __getattr__(name: str) -> Any:
    if name not in ("HeadwaterOnlineStore", "HeadwaterOnlineStoreConfig"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals().update(_made())
    return globals()[name]
