"""statements: what does a statement ask for? Texts read into plain data, before anything is looked up.

One file a kind: a frozen dataclass and the function that reads it. `read` finds the reader by the leading words,
`read_script` cuts a script into statements first. Expressions and queries inside a statement stay text, as `Fragment`s
with their parameters and their place, until whoever runs the statement knows the tables.

>>> read("OPTIMIZE orders ZORDER BY (id)")
Optimize(table='orders', where=None, zorder_by=('id',))
"""

from __future__ import annotations

from headwater.sql.statements.alter_table import AlterTable
from headwater.sql.statements.create_table import AttachTable, CreateTable, CreateTableAs, DropTable
from headwater.sql.statements.delete import Delete, TruncateTable
from headwater.sql.statements.derived import CreateArtefact, DropArtefact, RefreshArtefact, ShowArtefacts
from headwater.sql.statements.describe import (
    DescribeDetail,
    DescribeHistory,
    DescribeQuery,
    DescribeTable,
    Explain,
)
from headwater.sql.statements.insert import Insert
from headwater.sql.statements.materialized_view import CreateView
from headwater.sql.statements.merge import Merge, MergeClause
from headwater.sql.statements.online_table import CreateOnlineTable
from headwater.sql.statements.query import Query
from headwater.sql.statements.registry import leads, read, read_script, reader
from headwater.sql.statements.search_index import CreateSearchIndex, IndexedColumn
from headwater.sql.statements.show import (
    ShowColumns,
    ShowCreateTable,
    ShowFunctions,
    ShowProperties,
    ShowTables,
)
from headwater.sql.statements.statement import Statement
from headwater.sql.statements.update import Update
from headwater.sql.statements.upkeep import Optimize, Restore, Vacuum
from headwater.sql.tokens import split

__all__ = [
    "AlterTable",
    "AttachTable",
    "CreateArtefact",
    "CreateOnlineTable",
    "CreateSearchIndex",
    "CreateTable",
    "CreateTableAs",
    "CreateView",
    "Delete",
    "DescribeDetail",
    "DescribeHistory",
    "DescribeQuery",
    "DescribeTable",
    "DropArtefact",
    "DropTable",
    "Explain",
    "IndexedColumn",
    "Insert",
    "Merge",
    "MergeClause",
    "Optimize",
    "Query",
    "RefreshArtefact",
    "Restore",
    "ShowArtefacts",
    "ShowColumns",
    "ShowCreateTable",
    "ShowFunctions",
    "ShowProperties",
    "ShowTables",
    "Statement",
    "TruncateTable",
    "Update",
    "Vacuum",
    "leads",
    "read",
    "read_script",
    "reader",
    "split",
]
