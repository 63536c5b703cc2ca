"""Every action, and how it is said in Python, in SQL and on the command line: one record per action.

The templates are explained in `headwater.base.errors.phrase`. ``tests/errors/test_actions.py`` gives each piece of code
to the parser that a user would give it to, so a record that names a method, a statement or an option that is not there
fails.
"""

from __future__ import annotations

from collections.abc import Mapping

from headwater.base.errors.phrase import Phrase

__all__ = ["PHRASES"]

_STREAMS = "streams are written in Python only"
_CIRCUITS = "circuits are written in Python only"
_RESULTS = "rows are read by these methods in Python only"

_TABLES: dict[str, Phrase] = {
    "existing_table": Phrase(
        python='open it with «lake.table()», replace its rows with «overwrite()», or pass «mode="ignore"»',
        sql="«CREATE TABLE IF NOT EXISTS» keeps it, «CREATE OR REPLACE TABLE» replaces it",
    ),
    "open_table": Phrase(
        python="tables are opened with «lake.table({name!r})», and deleted by «lake.drop({name!r})»",
        sql="tables are deleted by «DROP TABLE {name!q}»",
    ),
    "drop_table": Phrase(
        python="a table of the lake itself is deleted by «drop()»",
        sql="a table of the lake itself is deleted by «DROP TABLE {name!q}»",
    ),
    "name_table": Phrase(
        python="give the table a name: «lake.attach(name, path)»",
        sql="give the table a name: «CREATE TABLE name USING DELTA LOCATION 'path'», or «lake.attach(name, path)»",
        cli_sql="give the table a name: «CREATE TABLE name USING DELTA LOCATION 'path'»",
        cli="give the table a name: «headwater sql {lake} -c \"CREATE TABLE name USING DELTA LOCATION 'path'\"»",
    ),
    "widen_column": Phrase(
        python="widen the table with «widen_column()» where that is safe",
        sql="widen the column where that is safe: «ALTER TABLE {table!q} ALTER COLUMN {column!q} TYPE {type}»",
    ),
    "safe_widenings": Phrase(
        python="byte -> short -> int -> long, float -> double, int -> double, date -> timestamp_ntz and decimals with "
        "more digits are safe",
        sql="TINYINT -> SMALLINT -> INT -> BIGINT, float -> double, int -> double, date -> timestamp_ntz and decimals "
        "with more digits are safe",
    ),
    "evolve_schema": Phrase(
        python='pass «schema_mode="merge"» to add them to the table',
        sql="add them to the table: «INSERT WITH SCHEMA EVOLUTION INTO {table!q} {query}»",
    ),
    "map_columns": Phrase(
        python="create the table with «properties={{'delta.columnMapping.mode': 'name'}}»",
        sql="create the table with «TBLPROPERTIES ('delta.columnMapping.mode' = 'name')»",
        cli="create the table with TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    ),
    "set_property": Phrase(
        python="{intro}: «t.set_properties({{{property!r}: {value!r}}})»",
        sql="{intro}: «ALTER TABLE {table!q} SET TBLPROPERTIES ('{property}' = '{value}')»",
    ),
    "shorten_retention": Phrase(
        python="pass «enforce_retention=False» when nothing else touches the table",
        sql="when nothing else touches the table, make it shorter: "
        "«ALTER TABLE {table!q} SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 hour')»",
    ),
    "enable_change_feed": Phrase(
        python="turn it on with «t.set_properties({{'delta.enableChangeDataFeed': 'true'}})», and read the versions "
        "since; «t.changes(after=…)» gives inserted and deleted rows of any version",
        sql="turn it on with «ALTER TABLE {table!q} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = "
        "'true')», and read "
        "the versions since",
    ),
    "drop_not_null": Phrase(
        python="drop the rule with «drop_not_null()»",
        sql="drop the rule: «ALTER TABLE {table!q} ALTER COLUMN {column!q} DROP NOT NULL»",
    ),
    "drop_constraint": Phrase(
        python="«drop_constraint()» first",
        sql="«ALTER TABLE {table!q} DROP CONSTRAINT {constraint!q}» first",
    ),
    "name_columns": Phrase(
        python="name the columns",
        sql="name the columns: «INSERT INTO {table!q} (a, b) {query}»",
    ),
}

_VERSIONS: dict[str, Phrase] = {
    "read_before": Phrase(
        python="versions before it can still be read with «at(version=…)»",
        sql="versions before it can still be read: «SELECT * FROM {table!q} VERSION AS OF {version}»",
    ),
    "restore_table": Phrase(
        python="«restore()» the table to {which}",
        sql="restore the table to {which}: «RESTORE TABLE {table!q} TO VERSION AS OF {version}»",
    ),
    "show_history": Phrase(
        python="«history()» shows the versions{tail}",
        sql="«DESCRIBE HISTORY {table!q}» shows the versions{tail}",
        cli="«headwater history {lake} {table}» shows the versions{tail}",
    ),
    "check_history": Phrase(
        python="look at «history()» before writing the same again; with «txn=(app_id, number)» a repeat is harmless",
        sql="look at «DESCRIBE HISTORY {table!q}» before writing the same again",
        cli="look at «headwater history {lake} {table}» before writing the same again",
    ),
    "storage_options": Phrase(
        python="give `storage_options` that reach it, or copy the rows to a table where it can be read",
        sql="give `storage_options` that reach it, or copy the rows to a table where it can be read",
        cli_sql="set variables of the environment that reach it, or copy the rows to a table where it can be read",
        cli="set variables of the environment that reach it, or copy the rows to a table where it can be read",
    ),
    "credentials": Phrase(
        python="give credentials in `storage_options`, or in the environment",
        sql="give credentials in `storage_options`, or in the environment",
        cli_sql="give credentials in the environment",
        cli="give credentials in the environment",
    ),
    "give_credentials": Phrase(
        python="give {names}, in `storage_options` or in the environment",
        sql="give {names}, in `storage_options` or in the environment",
        cli_sql="set {names} in the environment",
        cli="set {names} in the environment",
    ),
    "copy_from_hadoop": Phrase(
        python="copy it to a disk or a bucket (hadoop distcp), or mount it, and use that path; a frame "
        "that Spark reads "
        "there becomes a table by «lake.write(name, frame)»",
        sql="copy it to a disk or a bucket (hadoop distcp), or mount it, and use that path",
        cli="copy it to a disk or a bucket (hadoop distcp), or mount it, and use that path",
    ),
}

_DERIVED: dict[str, Phrase] = {
    "build": Phrase(
        python="build it: «lake.{kind.name}({name!r}).refresh()»",
        sql="build it: «REFRESH {kind.sql} {name!q}»",
        cli="build it: «headwater refresh {lake} {name}»",
    ),
    "refresh_after": Phrase(
        python="change its sources, and refresh it: «lake.{kind.name}({name!r}).refresh()»",
        sql="change its sources, and refresh it: «REFRESH {kind.sql} {name!q}»",
        cli="change its sources, and refresh it: «headwater refresh {lake} {name}»",
    ),
    "refresh_first": Phrase(
        python="refresh `{name}` first, or refresh `{reader}` with «cascade=True», which does that",
        sql="«REFRESH {kind.sql} {name!q}» first, or refresh `{reader}` without RESTRICT, which does that",
        cli="«headwater refresh {lake} {name}» first, or refresh `{reader}` without --no-cascade, which does that",
    ),
    "refresh_alone": Phrase(
        python="«cascade=False» refreshes `{name}` alone",
        sql="«REFRESH {kind.sql} {name!q} RESTRICT» refreshes it alone",
        cli="«headwater refresh {lake} {name} --no-cascade» refreshes it alone",
    ),
    "refresh_here": Phrase(
        python="«refresh(engine='local')» computes it in this process",
        sql="«REFRESH {kind.sql} {name!q} WITH (ENGINE = 'local')» computes it in this process",
        cli="«headwater refresh {lake} {name} --engine local» computes it in this process",
    ),
    "connect_spark": Phrase(
        python="give the lake a session: «hw.connect(path, spark=hw.spark())»",
        sql="open the lake with a session: «hw.connect(path, spark=hw.spark())»",
        cli="«headwater refresh {lake} {name} --engine spark» starts one",
    ),
    "rebuild": Phrase(
        python="«refresh(full=True)» computes it from scratch and puts it right",
        sql="«REFRESH {kind.sql} {name!q} FULL» computes it from scratch and puts it right",
        cli="«headwater refresh {lake} {name} --full» computes it from scratch and puts it right",
    ),
    "order_rows": Phrase(
        python='or say which row counts: «order_by="updated_at"»',
        sql="or say which row counts: «CREATE OR REPLACE ONLINE TABLE name FROM source KEY (id) ORDER BY updated_at»",
        cli="or say which row counts: ORDER BY updated_at in CREATE ONLINE TABLE",
    ),
    "recompute_once": Phrase(
        python="«refresh(full=True)» does it this once",
        sql="«REFRESH {kind.sql} {name!q} FULL» does it this once",
        cli="«headwater refresh {lake} {name} --full» does it this once",
    ),
    "auto_policy": Phrase(
        python='«policy="auto"» does it whenever it has to',
        sql="«TBLPROPERTIES ('headwater.policy' = 'auto')» does it whenever it has to",
        cli="TBLPROPERTIES ('headwater.policy' = 'auto') in its definition does it whenever it has to",
    ),
    "full_policy": Phrase(
        python='or «policy="full"», which computes it anew each time',
        sql="or «TBLPROPERTIES ('headwater.policy' = 'full')», which computes it from scratch each time",
        cli="or TBLPROPERTIES ('headwater.policy' = 'full') in its definition, which computes it from "
        "scratch each time",
    ),
    "auto_policy_of": Phrase(
        python='«lake.features({name!r}, policy="auto")» does it whenever it has to',
        sql='«lake.features({name!r}, policy="auto")» does it whenever it has to',
        cli_sql='from Python, «lake.features({name!r}, policy="auto")» does it whenever it has to',
        cli='from Python, «lake.features({name!r}, policy="auto")» does it whenever it has to',
    ),
    "define_function_again": Phrase(
        python="{intro}: «lake.{kind.name}({name!r}, function)»{tail}",
        sql="{intro}: «lake.{kind.name}({name!r}, function)»{tail}",
        cli_sql="{intro}, from Python: «lake.{kind.name}({name!r}, function)»{tail}",
        cli="{intro}, from Python: «lake.{kind.name}({name!r}, function)»{tail}",
    ),
    "define_again": Phrase(
        python="{intro}: «lake.{kind.name}({name!r}, sql)»{tail}",
        sql="{intro}: «CREATE OR REPLACE {kind.sql} {name!q} AS {query}»{tail}",
    ),
    "existing_derived": Phrase(
        python="«lake.{kind.name}({name!r}, sql)» gives it another definition, "
        "«lake.{kind.name}({name!r})» opens the one "
        "that is there",
        sql="«CREATE OR REPLACE {kind.sql}» gives it another definition, IF NOT EXISTS keeps the one it has",
    ),
    "create_index": Phrase(
        python="make one: «lake.index(name, {table!r}, refresh=True)»",
        sql="make one: «CREATE SEARCH INDEX name ON {table!q}»",
    ),
    "drop_derived": Phrase(
        python="delete it: «lake.{kind.name}({name!r}).drop()»",
        sql="delete it: «DROP {kind.sql} {name!q}»",
    ),
    "drop_together": Phrase(
        python="all together with «cascade=True»",
        sql="all together with «{statement} {name!q} CASCADE»",
        cli=None,
        why="no other verb of the command line drops anything",
    ),
    "give_function": Phrase(
        python="give it, «lake.features({name!r}, function)», or import the file that declares it",
        sql="give it, «lake.features({name!r}, function)», or import the file that declares it",
        cli_sql="do it from Python, where «lake.features({name!r}, function)» gives it",
        cli="do it from Python, where «lake.features({name!r}, function)» gives it",
    ),
    "register_function": Phrase(
        python="register it with «lake.function({name!r}, …)»{tail}",
        sql="register it with «lake.function({name!r}, …)»{tail}",
        cli_sql="do it from Python, where «lake.function({name!r}, …)» registers it{tail}",
        cli="do it from Python, where «lake.function({name!r}, …)» registers it{tail}",
    ),
}

_ENGINES: dict[str, Phrase] = {
    "run_on_spark": Phrase(
        python='run the query with «engine="spark"»',
        sql='run the query with «engine="spark"»',
        cli_sql="run the query with «--engine spark»",
        cli="run the query with «headwater sql {lake} --engine spark»",
        names_engine=True,
    ),
    "spark_if": Phrase(
        python='{when}, run it with «engine="spark"»',
        sql='{when}, run it with «engine="spark"»',
        cli_sql="{when}, run it with «--engine spark»",
        cli="{when}, run it with «headwater sql {lake} --engine spark»",
        names_engine=True,
    ),
    "spark_around": Phrase(
        python='«engine="spark"» is the way around it',
        sql='«engine="spark"» is the way around it',
        cli_sql="«--engine spark» is the way around it",
        cli="«headwater sql {lake} --engine spark» is the way around it",
        names_engine=True,
    ),
    "run_on_duckdb": Phrase(
        python='use «engine="duckdb"»',
        sql='use «engine="duckdb"»',
        cli_sql="use «--engine duckdb»",
        cli="use «headwater sql {lake} --engine duckdb»",
        names_engine=True,
    ),
    "run_elsewhere": Phrase(
        python='run the query with «engine="duckdb"» or «engine="spark"»',
        sql='run the query with «engine="duckdb"» or «engine="spark"»',
        cli_sql="run the query with «--engine duckdb» or «--engine spark»",
        cli="run the query with «headwater sql {lake} --engine duckdb» or «headwater sql {lake} --engine spark»",
        names_engine=True,
    ),
    "register_with_spark": Phrase(
        python="register it with Spark too: «spark.udf.register()»",
        sql="register it with Spark too: «spark.udf.register()»",
        cli_sql=None,
        cli=None,
        why="the session of the command line is its own, and ends with it",
    ),
    "analyze_on_spark": Phrase(
        python="{when}let Spark's analyzer read it: «hw.connect(path, spark=hw.spark())»",
        sql="{when}let Spark's analyzer read it: «hw.connect(path, spark=hw.spark())»",
        cli_sql="{when}define it from Python, where Spark's analyzer reads it: «hw.connect(path, spark=hw.spark())»",
        cli="{when}define it from Python, where Spark's analyzer reads it: «hw.connect(path, spark=hw.spark())»",
        names_engine=True,
    ),
    "compute_where_read": Phrase(
        python="{when}compute it where the view is read: Spark's analyzer gives no plan for it that can be used here",
        sql="{when}compute it where the view is read: Spark's analyzer gives no plan for it that can be used here",
        names_engine=True,
    ),
    "classic_session": Phrase(
        python="define it from a classic session («hw.spark()»)",
        sql="define it from a classic session («hw.spark()»)",
        cli_sql="define it from Python and a classic session («hw.spark()»)",
        cli="define it from Python and a classic session («hw.spark()»)",
    ),
    "own_reader": Phrase(
        python="let Headwater read the SQL itself",
        sql="let Headwater read the SQL itself",
    ),
    "set_session_conf": Phrase(
        python='«spark.conf.set("{setting}", "{value}")», or let «hw.spark()» make the session',
        sql='«spark.conf.set("{setting}", "{value}")», or let «hw.spark()» make the session',
        cli_sql="take {setting} out of spark-defaults.conf, or set it to {value} there",
        cli="take {setting} out of spark-defaults.conf, or set it to {value} there",
    ),
    "spark_dialect": Phrase(
        python='leave out «dialect="native"»: Spark SQL is the dialect',
        sql='leave out «dialect="native"»: Spark SQL is the dialect',
        cli_sql="leave out «--dialect native»: Spark SQL is the dialect",
        cli=None,
        why="only `headwater sql` has dialects",
    ),
    "native_query": Phrase(
        python="write one query in the engine's own SQL; for Spark SQL, and for statements, leave out "
        '«dialect="native"»',
        sql='write one query in the engine\'s own SQL; for Spark SQL, and for statements, leave out «dialect="native"»',
        cli_sql="write one query in the engine's own SQL; for Spark SQL, and for statements, leave out "
        "«--dialect native»",
        cli=None,
        why="only `headwater sql` has dialects",
    ),
    "give_parameter": Phrase(
        python='pass «parameters={{"{name}": …}}»',
        sql='pass «parameters={{"{name}": …}}»',
        cli_sql="pass «--param {name}=VALUE»",
        cli="pass «headwater sql {lake} --param {name}=VALUE»",
    ),
    "give_parameters": Phrase(
        python="pass «parameters=[…]»",
        sql="pass «parameters=[…]»",
        cli_sql="write :name instead of `?`, and pass «--param name=VALUE»",
        cli="write :name instead of `?`, and pass «headwater sql {lake} --param name=VALUE»",
    ),
    "use_parameters": Phrase(
        python='use parameters: WHERE id = :id, with «parameters={{"id": 5}}»',
        sql='use parameters: WHERE id = :id, with «parameters={{"id": 5}}»',
        cli_sql="use parameters: WHERE id = :id, with «--param id=5»",
        cli="use parameters: WHERE id = :id, with «headwater sql {lake} --param id=5»",
    ),
    "query_instead": Phrase(
        python="an expression sees one row at a time: join first, or use lake.sql",
        sql="an expression sees one row at a time: join first, or compute it in a query and MERGE its rows",
    ),
    "open_lake": Phrase(
        python="open another one with «hw.connect(location)»",
        sql="open another one with «hw.connect(location)»",
        cli_sql="open another one with «headwater sql LOCATION»",
        cli="open another one with «headwater sql LOCATION»",
    ),
    "change_settings": Phrase(
        python="settings of Headwater are set by HEADWATER_… or «hw.settings»",
        sql="settings of Headwater are set by HEADWATER_… or «hw.settings»",
        cli_sql="settings of Headwater are set by HEADWATER_…",
        cli="settings of Headwater are set by HEADWATER_…",
    ),
    "append_files": Phrase(
        python="read them in Python and append: «lake.table(name).append(pyarrow.parquet.read_table(path))»",
        sql="read them in Python and append: «lake.table(name).append(pyarrow.parquet.read_table(path))»",
        cli="read them in Python and append: «lake.table(name).append(pyarrow.parquet.read_table(path))»",
    ),
}

_RESULT: dict[str, Phrase] = {
    "keep_rows": Phrase(
        python="to read the rows more than once, call «to_arrow()» first, which keeps them",
        sql="to read the rows more than once, call «to_arrow()» first, which keeps them",
        cli_sql=None,
        cli=None,
        why=_RESULTS,
    ),
    "read_dicts": Phrase(
        python="read the rows with «to_dicts()»",
        sql="read the rows with «to_dicts()»",
        cli_sql=None,
        cli=None,
        why=_RESULTS,
    ),
    "read_without_names": Phrase(
        python="read the rows with «to_tuples()» or «to_arrow()»",
        sql="read the rows with «to_tuples()» or «to_arrow()»",
        cli_sql="print them with «--format table» or «--format csv»",
        cli=None,
        why="only `headwater sql` prints rows",
    ),
    "read_arrow": Phrase(
        python="read the rows with «to_arrow()»",
        sql="read the rows with «to_arrow()»",
        cli_sql="write the rows with «--format arrow»",
        cli=None,
        why="only `headwater sql` prints rows",
    ),
    "cast_to_text": Phrase(
        python="turn the column into text with CAST(… AS STRING)",
        sql="turn the column into text with CAST(… AS STRING)",
    ),
}

_PYTHON_ONLY: dict[str, Phrase] = {
    "check_format": Phrase(
        python="check format=, and schema= if the types of its columns are not those of the first file",
        sql=None,
        why=_STREAMS,
    ),
    "check_files": Phrase(
        python="check the folder, the pattern and format=", sql="check the folder and the pattern", why=_STREAMS
    ),
    "tiebreak": Phrase(
        python="name the columns that decide between equal times: «tiebreak=[...]»; or make the times unique first",
        sql=None,
        why=_STREAMS,
    ),
    "leave_out_null_times": Phrase(
        python='leave such rows out first: .«filter("{column} IS NOT NULL")»; or give them a time with with_columns',
        sql=None,
        why=_STREAMS,
    ),
    "check_ends": Phrase(
        python="check which column is start= and which is end=; leave such rows out with filter",
        sql=None,
        why=_STREAMS,
    ),
    "raise_rounds": Phrase(python="raise most= if it needs more rounds", sql=None, why=_CIRCUITS),
    "restore_circuit": Phrase(
        python="«restore()» gives a new one the state of the parts that are the same", sql=None, why=_CIRCUITS
    ),
    "open_read_only": Phrase(
        python="to read only, open the state with «read_only=True»", sql=None, why="state is opened in Python only"
    ),
    "consolidate": Phrase(
        python="a row was added more often than can be counted: «consolidate()» smaller batches, and look for a loop",
        sql="a row was added more often than can be counted: look for a loop in what is written",
    ),
    "add_merge_clause": Phrase(
        python="add one, such as .«when_matched_update_all()»",
        sql="add one, such as WHEN MATCHED THEN UPDATE SET *",
    ),
    "add_constraint": Phrase(
        python="expected «add_constraint()», which tests the rows that are there",
        sql="expected «ALTER TABLE {table!q} ADD CONSTRAINT name CHECK (condition)», which tests the "
        "rows that are there",
    ),
}

PHRASES: Mapping[str, Phrase] = {**_TABLES, **_VERSIONS, **_DERIVED, **_ENGINES, **_RESULT, **_PYTHON_ONLY}
