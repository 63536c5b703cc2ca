"""The part of a configuration that is about one table: where its rows come from, and what they have to be like."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, WithJsonSchema, model_validator

from headwater.base.config.fields import Duration, FolderPath, Location, Model, contradicts, expected
from headwater.base.errors import InputError, did_you_mean
from headwater.lake.catalog import Catalog
from headwater.serving.dtypes import parse_dtype
from headwater.serving.reserved import RESERVED

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ColumnConfig",
    "LakeSource",
    "LocalSource",
    "PushSource",
    "S3Source",
    "SourceConfig",
    "SourceKind",
    "TableConfig",
    "TableName",
]

SourceKind = Literal["s3", "local", "lake", "push"]
_KINDS: tuple[SourceKind, ...] = ("s3", "local", "lake", "push")
# What only some sources can use; an option that would be ignored is a mistake.
_FOLDER_ONLY = ("parts", "order_by")
_DECLARED = ("key", "columns", "ttl", "event_time")


def _table_name(name: str) -> str:
    try:
        Catalog.check_name(name)
    except InputError as e:
        expected(f"the name of a table: {e.hint}")
    return name


TableName = Annotated[str, AfterValidator(_table_name)]
"""Letters, digits and ``_``, with dots between the parts."""


def _bucket(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", name):
        expected("the name of a bucket: 2 to 255 letters, digits, dots, `-` and `_`")
    return name


class S3Source(Model):
    """Date folders below a prefix of a bucket. Credentials come from the environment (``AWS_…``)
    unless they are given.
    """

    bucket: Annotated[str, AfterValidator(_bucket)]
    """The name of the bucket."""
    prefix: str = ""
    """What the folders lie below."""
    region: str | None = None
    """The bucket's region."""
    endpoint: str | None = None
    """The URL of a server that speaks S3, such as MinIO; without it, that of AWS."""
    access_key_id: str | None = None
    """The access key; better as ``${VARIABLE}``."""
    secret_access_key: SecretStr | None = None
    """The secret key; only ever as ``${VARIABLE}``."""
    session_token: SecretStr | None = None
    """The token of a session, where there is one."""

    @property
    def location(self) -> str:
        """The URL that storage is opened by."""
        return f"s3://{self.bucket}/{self.prefix.strip('/')}".rstrip("/")

    @property
    def options(self) -> dict[str, str]:
        """The options that storage is opened with. They hold secrets."""
        secrets = {"AWS_SECRET_ACCESS_KEY": self.secret_access_key, "AWS_SESSION_TOKEN": self.session_token}
        plain = {
            "AWS_REGION": self.region,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            **{name: value.get_secret_value() for name, value in secrets.items() if value is not None},
        }
        return {name: value for name, value in plain.items() if value is not None}


class LocalSource(Model):
    """Date folders of this machine."""

    path: FolderPath
    """The folder that they lie in."""

    @property
    def location(self) -> str:
        """The path that storage is opened by."""
        return str(self.path)

    @property
    def options(self) -> dict[str, str]:
        """The options that storage is opened with: none."""
        return {}


class LakeSource(Model):
    """An online table of a lake."""

    location: Location
    """Where the lake is: a path, or a URL such as ``s3://bucket/prefix`` or ``az://container/prefix``."""
    table: TableName | None = None
    """The online table's name in the lake; without it, the name of this table."""
    storage_options: dict[str, SecretStr] = Field(default_factory=dict)
    """Options of the lake's storage, such as ``AWS_REGION``."""

    @property
    def options(self) -> dict[str, str]:
        """The options that storage is opened with. They hold secrets."""
        return {name: value.get_secret_value() for name, value in self.storage_options.items()}


class PushSource(Model):
    """Rows that come through the API."""


def _source(value: Any) -> Any:
    """``push`` alone is short for ``{push: {}}``."""
    if value == "push":
        return {"push": {}}
    if isinstance(value, dict) and "push" in value and value["push"] is None:
        return {**value, "push": {}}
    return value


class SourceConfig(Model):
    """Where rows come from: exactly one of these."""

    s3: S3Source | None = None
    """Date folders in a bucket."""
    local: LocalSource | None = None
    """Date folders of this machine."""
    lake: LakeSource | None = None
    """An online table of a lake, which follows the lake by its changes."""
    push: PushSource | None = None
    """Rows that are written through the API."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            what = f"has {len(given)} sources ({', '.join(given)})" if given else "has no source"
            contradicts(f"the table {what}", f"give exactly one of {', '.join(_KINDS)}")
        return self

    @property
    def kind(self) -> SourceKind:
        """Which one it is."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def folders(self) -> S3Source | LocalSource | None:
        """Where the date folders lie, for sources that have such."""
        return self.s3 or self.local


_DTYPES = (
    *("utf8", "binary", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "date", "timestamp", "decimal(p,s)", "list<…>"),
)


def _dtype(value: Any) -> Any:
    if not isinstance(value, str):
        expected(f"a type: {', '.join(_DTYPES)}")
    try:
        parse_dtype(value)
    except InputError as e:
        if value.startswith("list<"):
            expected("a list of values of a fixed width, like list<float32>")
        if value.startswith("decimal("):
            expected("a decimal of 1 to 38 digits, of which some are behind the point, like decimal(10,2)")
        near = did_you_mean(value, _DTYPES)
        expected(f"{f'`{near}`, or ' if near else ''}{(e.hint or '').removeprefix('expected ')}")
    return value.strip()


class ColumnConfig(Model):
    """One column: what the rows have to be like."""

    dtype: Annotated[str, BeforeValidator(_dtype), WithJsonSchema({"type": "string", "examples": list(_DTYPES)})]
    """The type: utf8, binary, bool, int8 to uint64, float16 to float64, decimal(p,s), date, timestamp, list<…>."""
    nullable: bool = True
    """Whether a value may be missing. Columns of the key are never null."""

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type."""
        return parse_dtype(self.dtype)


ColumnName = Annotated[str, Field(min_length=1)]


class TableConfig(Model):
    """One table."""

    source: Annotated[
        SourceConfig,
        BeforeValidator(_source),
        Field(json_schema_extra=lambda schema: schema.update(_or_push(schema))),
    ]
    """Where its rows come from: s3, local, lake or push."""
    poll_interval: Duration = timedelta(minutes=1)
    """How often to look for new rows."""
    parts: Annotated[int, Field(ge=1, le=4096)] = 8
    """How many files a version of the table is cut into, by a hash of the key."""
    key: list[ColumnName] = Field(default_factory=list)
    """The columns that a row is found by."""
    columns: dict[ColumnName, ColumnConfig] = Field(default_factory=dict)
    """The columns to serve, which the data has to have; without any, whatever is there is served."""
    ttl: Duration | None = None
    """How old a value may be before it counts as missing."""
    event_time: ColumnName | None = None
    """The column that says how old a row is."""
    order_by: ColumnName | None = None
    """The column that decides between rows of one key: the largest value wins. Without it, such rows are an error."""
    freshness: Duration | None = None
    """How old the newest version may be before the table counts as stale in ``/readyz``."""
    required: bool = True
    """Whether the server is ready only when this table is."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        self._check_options()
        for name in _twice(self.key):
            contradicts(f"key column `{name}` appears twice", "name each column once", "key")
        if self.ttl is not None and self.event_time is None:
            contradicts("`ttl` is given without `event_time`", "name the column that says how old a row is", "ttl")
        for name in self.columns:
            if name in RESERVED:
                contradicts(f"`{name}` is a column that answers have of their own", "give it another name", "columns")
        if self.columns:
            for name in self.key:
                self._check_declared("key", name)
                column = self.columns[name]
                if column.nullable and "nullable" in column.model_fields_set:
                    contradicts(
                        f"key column `{name}` is declared nullable", "a key is never null: say `false`", "columns"
                    )
            for option in ("event_time", "order_by"):
                if (named := getattr(self, option)) is not None:
                    self._check_declared(option, named)
            if self.event_time and not self.columns[self.event_time].dtype.startswith(("timestamp", "date")):
                dtype = self.columns[self.event_time].dtype
                contradicts(
                    f"event_time `{self.event_time}` is {dtype}", "it has to be a timestamp or a date", "event_time"
                )
        return self

    def _check_options(self) -> None:
        """What the source needs is there, and what it has no use for is not."""
        kind, given = self.source.kind, self.model_fields_set
        unused = {"lake": (*_DECLARED, *_FOLDER_ONLY), "push": ("poll_interval", *_FOLDER_ONLY)}.get(kind, ())
        for option in unused:
            if option in given:
                why = "the online table of the lake defines it" if kind == "lake" else "rows are pushed"
                contradicts(f"`{option}` means nothing for a table of source {kind}", f"{why}: leave it out", option)
        if kind != "lake" and not self.key:
            contradicts("the table has no key", "name the columns that rows are found by: `key: [user_id]`", "key")
        if kind == "push" and not self.columns:
            contradicts("a table of source push has no columns", "declare each column with its dtype", "columns")

    def _check_declared(self, option: str, name: str) -> None:
        if name not in self.columns:
            known = ", ".join(self.columns)
            contradicts(f"`{option}` names `{name}`, which is not declared", f"add it to the columns ({known})", option)

    @property
    def declared(self) -> pa.Schema | None:
        """The declared columns, those of the key first; None where nothing is declared."""
        import pyarrow as pa

        if not self.columns:
            return None
        names = [*self.key, *(name for name in self.columns if name not in self.key)]
        return pa.schema(
            [pa.field(n, self.columns[n].arrow, self.columns[n].nullable and n not in self.key) for n in names]
        )


def _or_push(schema: dict[str, Any]) -> dict[str, Any]:
    reference = schema.pop("$ref", None)
    return {"anyOf": [{"$ref": reference}, {"const": "push"}]} if reference else {}


def _twice(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]  # type: ignore[func-returns-value]
