"""What dbt asks of a lake: which relations there are, their columns, the catalog of its docs, seeds, and whether a view
is still the one that a model means.

Answers come from the lake's catalog and logs; no statement is run for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

import pyarrow as pa
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.sql import SQLAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.headwater.column import HeadwaterColumn
from dbt.adapters.headwater.connections import HeadwaterConnectionManager
from dbt.adapters.headwater.relation import DATABASE, ROOT, HeadwaterRelation
from headwater.base.change import ChangeBatch
from headwater.base.errors import HeadwaterError
from headwater.base.schema import spark_type
from headwater.incremental.views.ddl import POLICY, SHARDS
from headwater.incremental.views.outline import difference
from headwater.lake.catalog import TABLE
from headwater.lakehouse import Lake
from headwater.sql.statements import CreateView, read_script

if TYPE_CHECKING:
    import agate

__all__ = ["HeadwaterAdapter"]

_TYPES = {TABLE: RelationType.Table, "view": RelationType.MaterializedView}


class HeadwaterAdapter(SQLAdapter):  # type: ignore[misc]
    """dbt's adapter for lakes."""

    ConnectionManager = HeadwaterConnectionManager
    Relation = HeadwaterRelation
    Column = HeadwaterColumn
    CONSTRAINT_SUPPORT: ClassVar[dict[Any, Any]] = dict.fromkeys(ConstraintType, ConstraintSupport.NOT_SUPPORTED)

    # ------------------------------------------------------------------ how things are written

    @classmethod
    def quote(cls, identifier: str) -> str:
        """An identifier in SQL."""
        return f"`{identifier}`"

    @classmethod
    def date_function(cls) -> str:
        """The timestamp of now, in SQL."""
        return "current_timestamp()"

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column of text."""
        return "string"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column of numbers."""
        import agate

        return "double" if agate_table.aggregate(agate.MaxPrecision(col_idx)) else "bigint"

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column of whole numbers."""
        return "bigint"

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column of timestamps: without a zone they are UTC."""
        return "timestamp"

    @classmethod
    def convert_time_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """The type of a seed's column of times of day, which Spark does not have."""
        return "string"

    # ------------------------------------------------------------------ what is there

    @property
    def lake(self) -> Lake:
        """The lake of this thread's connection."""
        found: Lake = self.connections.get_thread_connection().handle.lake
        return found

    def list_schemas(self, database: str) -> list[str]:
        """The first parts of names; a schema is there as soon as a name has it."""
        return sorted({ROOT, *(name.rpartition(".")[0] for name in self.lake.catalog.names() if "." in name)})

    def check_schema_exists(self, database: str, schema: str) -> bool:
        """Whether any name has it."""
        return schema in self.list_schemas(database)

    def create_schema(self, relation: HeadwaterRelation) -> None:
        """Nothing: a schema is a part of names."""

    def drop_schema(self, relation: HeadwaterRelation) -> None:
        """Drop everything whose name has it, with what reads it."""
        for one in self.list_relations_without_caching(relation):
            name = one.lake_name
            if name not in self.lake:  # it went with what it reads
                continue
            if one.is_table:
                self.lake.drop(name, cascade=True)
            else:
                self.lake.derived(name).drop(cascade=True)
        self.cache.drop_schema(relation.database, relation.schema)

    def list_relations_without_caching(self, schema_relation: HeadwaterRelation) -> list[HeadwaterRelation]:
        """The tables, views and other artefacts of a schema."""
        found = []
        for name, kind in self.lake.catalog.kinds().items():
            schema, _, identifier = name.rpartition(".")
            if (schema or ROOT) == schema_relation.schema:
                kept = _TYPES.get(kind, RelationType.External)
                found.append(
                    self.Relation.create(database=DATABASE, schema=schema or ROOT, identifier=identifier, type=kept)
                )
        return found

    def get_columns_in_relation(self, relation: HeadwaterRelation) -> list[HeadwaterColumn]:
        """The columns of a table or view."""
        schema = self.lake.named(relation.lake_name).snapshot.schema
        return [self.Column(one.name, spark_type(one.arrow.type)) for one in schema.fields]

    def expand_column_types(self, goal: HeadwaterRelation, current: HeadwaterRelation) -> None:
        """Nothing: types have no lengths."""

    def _get_one_catalog(self, information_schema: Any, schemas: set[str], used_schemas: Any) -> agate.Table:
        """The tables and columns of `dbt docs generate`."""
        from dbt_common.clients.agate_helper import table_from_data_flat

        rows = list(self._catalog_rows(schemas))
        return self._catalog_filter_table(table_from_data_flat(rows, list(_CATALOG)), used_schemas)

    def _catalog_rows(self, schemas: Iterable[str]) -> Iterable[dict[str, Any]]:
        for schema in sorted(schemas):
            for one in self.list_relations_without_caching(self.Relation.create(database=DATABASE, schema=schema)):
                table = self.lake.table(one.lake_name)
                if not table.exists():  # some artefacts have no table
                    continue
                now = table.snapshot
                for number, column in enumerate(now.schema.fields, 1):
                    yield dict(
                        zip(
                            _CATALOG,
                            [
                                *(DATABASE, schema, one.identifier, str(one.type)),
                                *(now.state.metadata.description, None, column.name, number),
                                *(spark_type(column.arrow.type), column.metadata.get("comment")),
                            ],
                            strict=True,
                        )
                    )

    # ------------------------------------------------------------------ what macros ask and do

    @available.parse_none  # type: ignore[untyped-decorator]
    def view_difference(self, relation: HeadwaterRelation, statement: str) -> str | None:
        """Why the view of that name is not the one that a CREATE statement would make; None if it is."""
        try:
            (meant,) = read_script(statement)
            assert isinstance(meant, CreateView), "macros give that statement"
            options = {
                "sql": meant.query.text,
                "policy": meant.properties.get(POLICY, "auto"),
                "shards": meant.properties.get(SHARDS, "1"),
                "comment": meant.comment,
            }
            return difference(self.lake.named(relation.lake_name).name, options, None, self.lake.environment())
        except HeadwaterError as error:
            raise DbtDatabaseError(str(error.on("sql"))) from error

    @available.parse_none  # type: ignore[untyped-decorator]
    def load_seed(self, relation: HeadwaterRelation, rows: agate.Table) -> None:
        """Make the rows of a CSV file all rows of its table, in one commit, and in none if they are that already."""
        try:
            table = self.lake.named(relation.lake_name)
            columns = {one.name.lower(): one.arrow for one in table.snapshot.schema.fields}
            arrays, fields = [], []
            for number, name in enumerate(rows.column_names):
                wanted = columns.get(name.lower(), pa.field(name, pa.string()))
                arrays.append(pa.array([_as(wanted.type, row[number]) for row in rows.rows], wanted.type))
                fields.append(wanted)
            loaded = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
            if len(fields) != len(columns) or not ChangeBatch.diff(table.to_arrow(), loaded).is_empty:
                table.overwrite(loaded)
        except (HeadwaterError, pa.ArrowInvalid, ValueError) as error:
            said = str(error.on("sql")) if isinstance(error, HeadwaterError) else f"a value does not fit: {error}"
            raise DbtDatabaseError(f"seed {relation.lake_name}: {said}") from error


_CATALOG = (
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_index",
    "column_type",
    "column_comment",
)


def _as(wanted: pa.DataType, value: Any) -> Any:
    """A value that dbt has read from CSV, for a column of this type: its numbers are all decimals."""
    if value is None:
        return None
    if pa.types.is_integer(wanted) and isinstance(value, Decimal):
        if value != int(value):
            raise ValueError(f"{value} is no whole number")
        return int(value)
    if pa.types.is_floating(wanted):
        return float(value)
    if pa.types.is_decimal(wanted):
        return Decimal(str(value))
    return str(value) if pa.types.is_string(wanted) else value
