"""Statements of Spark that a lake does not have, each with what to do instead.

A user of Spark writes them without a thought, and "unknown statement" would not help. Whoever brings one of these
statements registers a reader for it, which wins: this table is asked only where no reader fits.
"""

from __future__ import annotations

from headwater.base.errors import Action, Hint
from headwater.sql.statements.cursor import Cursor

__all__ = ["ELSEWHERE", "elsewhere"]

_NO_VIEWS = (
    "views here keep their rows",
    "write CREATE MATERIALIZED VIEW name AS query, or name the query with WITH in each statement",
)
_SCHEMA_IS_A_FOLDER = (
    "a schema is made by its first table",
    "write the schema before the name: CREATE TABLE sales.orders …",
)
_NO_SCHEMA_LIST = ("schemas are parts of names here", "SHOW TABLES lists each table with its schema (namespace)")
_ONE_COMMIT = (
    "each statement is a transaction of its own",
    "leave it out: a statement is committed as a whole, or not at all; RESTORE brings an older version back",
)
_NO_RIGHTS = ("a lake has no users", "who may read and write is decided by the storage: its folders or buckets")
_NO_CACHE = ("nothing has to be cached or refreshed", "leave it out: each query reads the newest version by itself")
_NO_SETTINGS = (
    "there are no settings in SQL",
    ("leave it out (ANSI mode and UTC always hold)", Action("change_settings", also=True)),
)

# Leading words -> why not, and what instead.
ELSEWHERE: dict[tuple[str, ...], tuple[str, Hint]] = {
    ("CREATE", "VIEW"): _NO_VIEWS,
    ("CREATE", "OR", "REPLACE", "VIEW"): _NO_VIEWS,
    ("CREATE", "TEMP"): _NO_VIEWS,
    ("CREATE", "TEMPORARY"): _NO_VIEWS,
    ("CREATE", "GLOBAL"): _NO_VIEWS,
    ("CREATE", "OR", "REPLACE", "TEMP"): _NO_VIEWS,
    ("CREATE", "OR", "REPLACE", "TEMPORARY"): _NO_VIEWS,
    ("CREATE", "OR", "REPLACE", "GLOBAL"): _NO_VIEWS,
    ("ALTER", "VIEW"): _NO_VIEWS,
    ("DROP", "VIEW"): _NO_VIEWS,
    ("CREATE", "SCHEMA"): _SCHEMA_IS_A_FOLDER,
    ("CREATE", "DATABASE"): _SCHEMA_IS_A_FOLDER,
    ("CREATE", "NAMESPACE"): _SCHEMA_IS_A_FOLDER,
    ("DROP", "SCHEMA"): ("a schema goes with its last table", "drop its tables: DROP TABLE sales.orders"),
    ("DROP", "DATABASE"): ("a schema goes with its last table", "drop its tables: DROP TABLE sales.orders"),
    ("SHOW", "SCHEMAS"): _NO_SCHEMA_LIST,
    ("SHOW", "DATABASES"): _NO_SCHEMA_LIST,
    ("SHOW", "NAMESPACES"): _NO_SCHEMA_LIST,
    ("SHOW", "CATALOGS"): ("a lake is the one catalogue", Action("open_lake")),
    ("USE",): ("there is no current schema", "write the schema before the name: SELECT … FROM sales.orders"),
    ("SHOW", "PARTITIONS"): (
        "partitions are not listed",
        "ask for their values: SELECT DISTINCT day FROM table; DESCRIBE DETAIL names the partition columns",
    ),
    ("MSCK",): ("the log knows every file and partition", "leave it out"),
    ("BEGIN",): _ONE_COMMIT,
    ("START", "TRANSACTION"): _ONE_COMMIT,
    ("COMMIT",): _ONE_COMMIT,
    ("ROLLBACK",): _ONE_COMMIT,
    ("SET",): _NO_SETTINGS,
    ("RESET",): _NO_SETTINGS,
    ("DECLARE",): ("there are no variables", Action("use_parameters")),
    ("GRANT",): _NO_RIGHTS,
    ("REVOKE",): _NO_RIGHTS,
    ("COPY", "INTO"): (
        "files are not copied by SQL yet",
        Action("append_files"),
    ),
    ("LOAD", "DATA"): (
        "files are not loaded by SQL yet",
        Action("append_files"),
    ),
    ("CACHE",): _NO_CACHE,
    ("UNCACHE",): _NO_CACHE,
    ("CLEAR", "CACHE"): _NO_CACHE,
    ("REFRESH",): _NO_CACHE,
    ("ANALYZE",): (
        "statistics need not be computed",
        "leave it out: each file is written with its own; OPTIMIZE table ZORDER BY (columns) makes them sharper",
    ),
    ("CREATE", "FUNCTION"): ("functions cannot be made in SQL", "SHOW FUNCTIONS lists those that are there"),
    ("CREATE", "TEMPORARY", "FUNCTION"): (
        "functions cannot be made in SQL",
        "SHOW FUNCTIONS lists those that are there",
    ),
    ("CREATE", "INDEX"): ("there are no indexes", "OPTIMIZE table ZORDER BY (columns) lets queries skip files"),
    ("CALL",): ("there are no procedures", "SHOW FUNCTIONS lists the functions"),
}


def elsewhere(cursor: Cursor) -> None:
    """Refuse a statement that begins like one of these."""
    fitting = [words for words in ELSEWHERE if cursor.sees(*words)]
    if fitting:
        cursor.fail(*ELSEWHERE[max(fitting, key=len)], at=cursor.tokens[0])
