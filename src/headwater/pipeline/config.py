"""What ``headwater.yaml`` may say, and what a view may say in the comment at the top of its file.

Both are strict: an unknown key is refused with its line and the nearest one. ``schema.json`` beside this file is the
JSON Schema of ``headwater.yaml``, for editors; a test holds it equal to these models.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, WithJsonSchema

from headwater.base.config.fields import Duration, Location, Model, expected
from headwater.base.errors import InputError
from headwater.lake.catalog import Catalog

__all__ = [
    "Defaults",
    "ExportConfig",
    "IndexConfig",
    "OnlineConfig",
    "Profile",
    "ProjectConfig",
    "SourceConfig",
    "SparkConfig",
    "ViewHeader",
]

PROJECT_FILE = "headwater.yaml"


def _node_name(name: str) -> str:
    try:
        Catalog.check_name(name)
    except InputError as error:
        expected(f"a name of a table: {error.hint}")
    return name


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


NodeName = Annotated[str, AfterValidator(_node_name)]
"""Letters, digits and ``_``, with dots between the parts."""

Names = Annotated[
    list[str],
    BeforeValidator(_listed),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A name, or a list of them."""

Policy = Literal["auto", "strict", "full"]


class SparkConfig(Model):
    """The Spark that a profile runs on."""

    master: str | None = None
    """``local[2]``, ``spark://…``, ``yarn``, ``k8s://…`` or ``sc://host:port``."""
    conf: dict[str, str] = Field(default_factory=dict)
    """Spark's own settings."""


class Profile(Model):
    """Where a project runs: what differs between a laptop and a cluster."""

    lake: Location | None = None
    """The lake, in place of the project's."""
    storage_options: dict[str, SecretStr] = Field(default_factory=dict)
    """Options of its storage, added to those of the project; secrets as ``${VARIABLE}``."""
    spark: SparkConfig | None = None
    """With it, what Spark builds faster is built there."""
    workers: Annotated[int, Field(ge=1, le=256)] | None = None
    """How many nodes are refreshed at a time; by default one for each core, and four at most."""


class SourceConfig(Model):
    """A table that the project reads and does not make."""

    location: Location | None = None
    """Where it lies, if it is not in the lake: it is attached under its name."""
    description: str = ""
    """What it is, for people."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Columns that it must have, with their types in Spark SQL; it may have more."""
    freshness: Duration | None = None
    """How old its newest commit may be."""


class _Kept(Model):
    """What all that is kept has in common."""

    description: str = ""
    """What it is, for people."""
    freshness: Duration | None = None
    """How old the newest change of a source may be that it does not reflect."""
    tags: Names = Field(default_factory=list)
    """Names to select it by: ``tag:daily``."""


class IndexConfig(_Kept):
    """A search index."""

    on: str | None = None
    """The table or view."""
    text: Names | dict[str, dict[str, Any]] | None = None
    """Columns whose words are found."""
    keyword: Names | None = None
    """Columns whose values are found as a whole."""
    numeric: Names | None = None
    """Columns of numbers, booleans, dates and timestamps."""
    binary: Names | None = None
    """Columns of bytes."""
    ip: Names | None = None
    """Columns of IP addresses."""
    json_: Names | None = Field(default=None, alias="json")
    """Columns of structs, arrays, maps or JSON."""
    substring: Names = Field(default_factory=list)
    """Fields with trigrams."""
    hot: Names = Field(default_factory=list)
    """Columns whose values are kept in the index."""
    analyzer: str = "default"
    """How text becomes words."""
    target_rows: Annotated[int, Field(ge=1)] = 1_000_000
    """How many rows one split holds at most."""


class OnlineConfig(_Kept):
    """An online table."""

    source: str | None = None
    """The table or view."""
    key: Names
    """The columns that identify a row."""
    columns: Names | None = None
    """What can be fetched; everything but the key by default."""
    ttl: Duration | None = None
    """How old a row may be before it is answered with nulls."""
    event_time: str | None = None
    """The column that says how old a row is."""
    order_by: str | None = None
    """Of several rows with one key that counts whose value of this column is largest."""
    parts: Annotated[int, Field(ge=0, le=4096)] = 0
    """How many files hold the rows."""


class ExportConfig(_Kept):
    """An export: plain Parquet files."""

    source: str | None = None
    """The table or view."""
    to: Location | None = None
    """The folder that the files are written to."""
    columns: Names | None = None
    """Some columns; all by default."""
    where: str | None = None
    """A condition on the rows, in Spark SQL."""


class Defaults(Model):
    """What holds for every node that does not say otherwise."""

    policy: Policy = "auto"
    """How views are refreshed."""
    freshness: Duration | None = None
    """How old the newest change may be that a node does not reflect."""
    retries: Annotated[int, Field(ge=0, le=20)] = 3
    """How often a refresh is tried again after a failure that may pass."""
    retry_wait: Duration = timedelta(seconds=1)
    """How long to wait before the first retry; each further one waits twice as long."""


class ViewHeader(_Kept):
    """What the comment at the top of a view's file may say."""

    policy: Policy | None = None
    """How it is refreshed."""
    shards: Annotated[int, Field(ge=1, le=64)] = 1
    """How many parts its state has."""
    indexes: dict[NodeName, IndexConfig] = Field(default_factory=dict)
    """Search indexes on it."""
    online: dict[NodeName, OnlineConfig] = Field(default_factory=dict)
    """Online tables of its rows."""
    exports: dict[NodeName, ExportConfig] = Field(default_factory=dict)
    """Exports of its rows."""
    tests: list[Any] = Field(default_factory=list)
    """Data tests."""
    partition_by: Names | None = None
    """Not supported: the rows of a view lie where its changes put them."""


class ProjectConfig(Model):
    """A project."""

    name: Annotated[str, Field(min_length=1, max_length=128)]
    """What the project is called in logs and metrics."""
    lake: Location = "lake"
    """Where the lake lies: a folder beside this file, or a URL."""
    storage_options: dict[str, SecretStr] = Field(default_factory=dict)
    """Options of its storage; secrets as ``${VARIABLE}``."""
    profile: str = "local"
    """The profile to take where none is named."""
    profiles: dict[str, Profile] = Field(default_factory=dict)
    """What differs between places to run."""
    defaults: Defaults = Field(default_factory=Defaults)
    """What holds for every node that does not say otherwise."""
    sources: dict[NodeName, SourceConfig] = Field(default_factory=dict)
    """Tables that the project reads. Tables of the lake need not be declared."""
    indexes: dict[NodeName, IndexConfig] = Field(default_factory=dict)
    """Search indexes, by name."""
    online: dict[NodeName, OnlineConfig] = Field(default_factory=dict)
    """Online tables, by name."""
    exports: dict[NodeName, ExportConfig] = Field(default_factory=dict)
    """Exports, by name."""
    tests: dict[str, list[Any]] = Field(default_factory=dict)
    """Data tests, by the table that they are of."""

    def profile_of(self, name: str | None) -> Profile:
        """The profile of that name; ``local`` is there without being declared."""
        from headwater.base.errors import ProjectError

        chosen = name or self.profile
        if chosen not in self.profiles and chosen != "local":
            raise ProjectError.unknown_profile(chosen, sorted({"local", *self.profiles}), PROJECT_FILE)
        return self.profiles.get(chosen) or Profile()
