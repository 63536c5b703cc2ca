"""Every error a user can meet, in one tree.

    HeadwaterError
    ├── InputError            what was passed in is wrong             (also a ValueError)
    │   ├── NotFoundError     a table, column, version or file        (also a LookupError)
    │   ├── SchemaError       types or columns that do not fit
    │   └── ExpressionError   a predicate or SQL text that does not parse or resolve
    ├── ConstraintError       data breaks a rule of the table: NOT NULL, CHECK, generated column
    ├── UnsupportedError      we know what is asked and refuse it, with the reason
    ├── ConflictError         another writer committed first, and retrying would not be safe
    ├── CorruptionError       what lies on storage is damaged: log, checkpoint, Parquet, deletion vector
    ├── StorageError          storage refuses or fails: permission, full disk, unreachable endpoint
    ├── CancelledError        a query was stopped before it had given all its rows
    └── SetupError            this machine lacks something: Java, an extra, memory

Each error carries a stable ``code`` (tests and scripts may rely on it), a message that says what
happened, ``where`` it happened, and a ``hint``: what to do next. Errors are built by the classmethods
below, so that one situation has one wording everywhere.

>>> str(NotFoundError.column("amout", ["amount", "id"], where="orders"))
'error[E1002]: no column `amout`\\n  where: orders\\n  hint: did you mean `amount`? columns: amount, id'
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Self

__all__ = [
    "CancelledError",
    "ConflictError",
    "ConstraintError",
    "CorruptionError",
    "ExpressionError",
    "HeadwaterError",
    "InputError",
    "NotFoundError",
    "SchemaError",
    "SetupError",
    "StorageError",
    "UnsupportedError",
    "did_you_mean",
]


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """The nearest candidate to ``name``, ignoring case, or None.

    >>> did_you_mean("Oders", ["orders", "cards"])
    'orders'
    """
    by_lower = {c.lower(): c for c in candidates}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[near[0]] if near else None


def _list_some(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return shown + (f", … ({len(names)} in all)" if len(names) > limit else "")


def _candidates_hint(name: str, candidates: Sequence[str], kind: str) -> str:
    near = did_you_mean(name, candidates)
    lead = f"did you mean `{near}`? " if near else ""
    return f"{lead}{kind}: {_list_some(candidates)}" if candidates else f"there are no {kind} yet"


class HeadwaterError(Exception):
    """The root: ``except hw.HeadwaterError`` catches everything Headwater raises on purpose."""

    # Where in the text that was read, for errors about a text: see `placed_at`.
    position: int | None = None
    # The name that is wrong, for errors about a name.
    subject: str | None = None

    def __init__(self, code: str, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.code, self.message, self.where, self.hint))

    def _about(self, name: str) -> Self:
        self.subject = name
        return self

    def placed_at(self, text: str, position: int | None) -> Self:
        """This error, showing ``text`` with the place underlined."""
        self.position = position
        self.where = underline(text, position)
        return self

    def as_dict(self) -> dict[str, str | None]:
        """The same facts for ``--json`` and logs."""
        return {"code": self.code, "message": self.message, "where": self.where, "hint": self.hint}


def _rebuild(
    kind: type[HeadwaterError], code: str, message: str, where: str | None, hint: str | None
) -> HeadwaterError:
    # Errors cross process borders (Spark tasks, process pools), so they pickle by their facts.
    return kind(code, message, where=where, hint=hint)


class InputError(HeadwaterError, ValueError):
    """What was passed in is wrong."""

    @classmethod
    def bad_argument(cls, name: str, value: object, expected: str) -> Self:
        return cls("E1001", f"`{name}` is {value!r}", hint=f"expected {expected}")

    @classmethod
    def bad_name(cls, name: str) -> Self:
        return cls(
            "E1004",
            f"`{name}` cannot be the name of a table",
            hint="use letters, digits and _ (not first a digit), with dots between the parts: sales.orders",
        )._about(name)

    @classmethod
    def already_exists(cls, name: str, location: str) -> Self:
        return cls(
            "E1005",
            f"table `{name}` exists already",
            where=location,
            hint='open it with lake.table(), replace its rows with overwrite(), or pass mode="ignore"',
        )

    @classmethod
    def not_arrow(cls, kind: str) -> Self:
        return cls(
            "E1006",
            f"cannot read rows from an object of type {kind}",
            hint="pass a pyarrow Table or RecordBatch(Reader), pandas or polars frame, a Spark DataFrame, "
            "a list of dicts, or anything with __arrow_c_stream__",
        )

    @classmethod
    def bad_setting(cls, name: str, value: str, expected: str) -> Self:
        return cls("E1007", f"setting {name}={value!r} is not valid", hint=f"expected {expected}")

    @classmethod
    def unknown_setting(cls, name: str, known: Sequence[str]) -> Self:
        return cls("E1008", f"no setting `{name}`", hint=_candidates_hint(name, known, "settings"))

    @classmethod
    def bad_frontier(cls, text: str, why: str) -> Self:
        return cls("E1009", f"`{text}` is not a frontier: {why}", hint="write it like `orders@42 cards@17`")

    @classmethod
    def retention_too_short(cls, hours: float, minimum: float, where: str) -> Self:
        return cls(
            "E1010",
            f"vacuum with a retention of {hours:g} h could delete files that readers and writers still use",
            where=where,
            hint=f"keep at least {minimum:g} h (delta.deletedFileRetentionDuration), or pass "
            "enforce_retention=False when nothing else touches the table",
        )

    @classmethod
    def ambiguous_merge(cls, rows: int, where: str) -> Self:
        return cls(
            "E1011",
            f"{rows} target row(s) match more than one source row, so the result would depend on their order",
            where=where,
            hint="make the source unique by the merge key first (deduplicate, or aggregate)",
        )

    @classmethod
    def append_only(cls, where: str) -> Self:
        return cls(
            "E1012",
            "the table is append-only (delta.appendOnly=true), rows cannot be changed or removed",
            where=where,
            hint="unset the property first: t.set_properties({'delta.appendOnly': 'false'})",
        )

    @classmethod
    def bad_range(cls, after: int, until: int) -> Self:
        return cls("E1013", f"changes(after={after}, until={until}) runs backwards", hint="after must be <= until")

    @classmethod
    def not_a_table(cls, location: str) -> Self:
        return cls(
            "E1014",
            "the folder holds files but no Delta table",
            where=location,
            hint="attach the folder that contains `_delta_log`, or create the table under another name",
        )

    @classmethod
    def no_change_feed(cls, version: int, where: str) -> Self:
        return cls(
            "E1020",
            f"version {version} of the table has no change data feed",
            where=where,
            hint="turn it on with ALTER TABLE … SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true'), and read the "
            "versions since; t.changes(after=…) gives inserted and deleted rows of any version",
        )

    @classmethod
    def nested(cls, inner: str, outer: str, where: str) -> Self:
        return cls(
            "E1017",
            f"table `{inner}` would lie in the folder of table `{outer}`",
            where=where,
            hint="their files would mix; give one of them another name",
        )

    @classmethod
    def port_taken(cls, kind: str, name: str) -> Self:
        return cls("E1502", f"the circuit has an {kind} `{name}` already", hint="give this one another name")

    @classmethod
    def in_transaction(cls) -> Self:
        return cls("E1503", "a transaction is under way", hint="end it first: one with block at a time")

    @classmethod
    def other_state(cls, folder: str, operators: Sequence[str]) -> Self:
        return cls(
            "E1505",
            f"the state is that of another circuit: it has nothing for {_list_some(operators)}",
            where=folder,
            hint="build the circuit as it was when the checkpoint was made, or start with an empty store",
        )

    @classmethod
    def failing_function(cls, name: str, error: BaseException) -> Self:
        what = f"{type(error).__name__}: {error}".rstrip(": ")
        return cls("E1504", f"the function {name} raised {what}", hint="nothing was changed; mend it, and step again")

    @classmethod
    def bad_rows(cls, why: str) -> Self:
        return cls(
            "E1018", f"the rows do not make a table: {why}", hint="give each column one type, and all one length"
        )

    @classmethod
    def unknown_option(cls, name: str, known: Sequence[str]) -> Self:
        return cls("E1019", f"no storage option `{name}`", hint=_candidates_hint(name, known, "options"))

    @classmethod
    def bad_clause(cls, why: str, hint: str) -> Self:
        return cls("E1015", why, hint=hint)

    @classmethod
    def bad_property(cls, name: str, value: str, expected: str) -> Self:
        return cls("E1016", f"table property {name}={value!r} is not valid", hint=f"expected {expected}")

    @classmethod
    def result_consumed(cls, what: str) -> Self:
        return cls(
            "E1401",
            f"the rows of this result are gone: {what}",
            hint="run the query again; to read the rows more than once, call to_arrow() first, which keeps them",
        )

    @classmethod
    def not_scalar(cls, rows: str, columns: int) -> Self:
        return cls(
            "E1403",
            f"the result is not one value: it has {rows} and {columns} column{'' if columns == 1 else 's'}",
            hint="select one column and one row, or read the rows with to_dicts()",
        )

    @classmethod
    def same_names(cls, names: Sequence[str], what: str) -> Self:
        return cls(
            "E1404",
            f"several columns of the result have the same name, which {what} cannot hold: {_list_some(names)}",
            hint="give them names of their own with AS, or read the rows with to_tuples() or to_arrow()",
        )

    @classmethod
    def no_python_value(cls, kind: str, why: str) -> Self:
        return cls(
            "E1405",
            f"a value of type {kind} has no Python counterpart: {why}",
            hint="read the rows with to_arrow(), or turn the column into text with CAST(… AS STRING)",
        )


class NotFoundError(InputError, LookupError):
    """A name, version or file that is not there."""

    @classmethod
    def table(cls, name: str, known: Sequence[str], where: str) -> Self:
        hint = _candidates_hint(name, known, "tables")
        return cls("E1101", f"no table `{name}`", where=where, hint=hint)._about(name)

    @classmethod
    def attached(cls, name: str, known: Sequence[str], where: str) -> Self:
        return cls(
            "E1109",
            f"no table is attached as `{name}`",
            where=where,
            hint=f"attached: {_list_some(known)}"
            if known
            else "none is; a table of the lake itself is deleted by drop()",
        )

    @classmethod
    def port(cls, kind: str, name: str, known: Sequence[str]) -> Self:
        return cls("E1501", f"the circuit has no {kind} `{name}`", hint=_candidates_hint(name, known, f"{kind}s"))

    @classmethod
    def column(cls, name: str, known: Sequence[str], where: str | None = None) -> Self:
        hint = _candidates_hint(name, known, "columns")
        return cls("E1002", f"no column `{name}`", where=where, hint=hint)._about(name)

    @classmethod
    def ambiguous(cls, name: str, choices: Sequence[str], where: str | None = None) -> Self:
        what = f"`{name}` is ambiguous: {len(choices)} columns match"
        return cls("E1110", what, where=where, hint=f"say which one is meant: {_list_some(choices)}")

    @classmethod
    def version(cls, version: int, newest: int, where: str) -> Self:
        return cls("E1102", f"no version {version}", where=where, hint=f"versions run from 0 to {newest}")

    @classmethod
    def version_gone(cls, version: int, oldest: int, newest: int, where: str) -> Self:
        return cls(
            "E1103",
            f"version {version} can no longer be rebuilt: its log entries were cleaned up",
            where=where,
            hint=f"versions {oldest} to {newest} can be read; keep more with delta.logRetentionDuration",
        )

    @classmethod
    def timestamp(cls, timestamp: str, first: str, where: str) -> Self:
        return cls(
            "E1104",
            f"nothing was committed at or before {timestamp}",
            where=where,
            hint=f"the earliest commit that can be read is of {first}",
        )

    @classmethod
    def data_file(cls, path: str, where: str, version: int) -> Self:
        return cls(
            "E1105",
            f"data file `{path}` of version {version} is missing",
            where=where,
            hint="a vacuum removed it, or it was deleted by hand: read a newer version, or restore the file",
        )

    @classmethod
    def no_commit(cls, timestamp: str, side: str, where: str) -> Self:
        return cls(
            "E1111",
            f"nothing was committed at or {side} {timestamp}",
            where=where,
            hint="DESCRIBE HISTORY shows the versions with their times",
        )

    @classmethod
    def object(cls, path: str, where: str) -> Self:
        return cls("E1106", f"no file `{path}`", where=where)

    @classmethod
    def constraint(cls, name: str, known: Sequence[str], where: str) -> Self:
        return cls("E1107", f"no constraint `{name}`", where=where, hint=_candidates_hint(name, known, "constraints"))

    @classmethod
    def folder(cls, location: str) -> Self:
        return cls("E1108", "there is no such folder", where=location, hint="create it, or check the path")

    @classmethod
    def state(cls, what: str, name: str, known: Sequence[str], where: str) -> Self:
        hint = _candidates_hint(name, known, f"{what}s")
        return cls("E1112", f"the state has no {what} `{name}`", where=where, hint=hint)._about(name)


class SchemaError(InputError):
    """Types or columns that do not fit."""

    @classmethod
    def type_clash(cls, column: str, have: str, want: str, where: str | None = None) -> Self:
        return cls(
            "E1201",
            f"column `{column}` is {want}, but the data holds {have}",
            where=where,
            hint=f"cast it to {want}, or widen the table with widen_column() where that is safe",
        )

    @classmethod
    def extra_columns(cls, extra: Sequence[str], known: Sequence[str], where: str | None = None) -> Self:
        near = did_you_mean(extra[0], known)
        lead = f"did you mean `{near}`? " if near else ""
        return cls(
            "E1202",
            f"the data has columns the table lacks: {_list_some(extra)}",
            where=where,
            hint=f'{lead}drop them, or pass schema_mode="merge" to add them to the table',
        )

    @classmethod
    def column_count(cls, given: int, wanted: Sequence[str], where: str | None = None) -> Self:
        return cls(
            "E1211",
            f"{given} column(s) are given for {len(wanted)}: {_list_some(wanted)}",
            where=where,
            hint="give one value for each column, or name the columns: INSERT INTO table (a, b) …",
        )

    @classmethod
    def missing_columns(cls, missing: Sequence[str], where: str | None = None) -> Self:
        return cls(
            "E1203",
            f"the data lacks required columns: {_list_some(missing)}",
            where=where,
            hint="they are NOT NULL in the table, so each row must have a value",
        )

    @classmethod
    def unknown_type(cls, text: str, system: str) -> Self:
        return cls("E1204", f"{system} type `{text}` has no Delta counterpart", hint="cast the column first")

    @classmethod
    def duplicate_columns(cls, names: Sequence[str]) -> Self:
        return cls(
            "E1205",
            f"column names clash (case does not tell them apart): {_list_some(names)}",
            hint="rename one of them",
        )

    @classmethod
    def bad_widening(cls, column: str, have: str, want: str) -> Self:
        return cls(
            "E1206",
            f"column `{column}` cannot be widened from {have} to {want}",
            hint="byte -> short -> int -> long, float -> double, int -> double, date -> timestamp_ntz and "
            "decimals with more digits are safe",
        )

    @classmethod
    def bad_column_name(cls, name: str) -> Self:
        return cls(
            "E1207",
            f"`{name}` cannot be a column name without column mapping",
            hint="avoid the characters ' ,;{}()\\n\\t=', or create the table with "
            "properties={'delta.columnMapping.mode': 'name'}",
        )

    @classmethod
    def bad_partition(cls, column: str, why: str) -> Self:
        return cls(
            "E1208", f"cannot partition by `{column}`: {why}", hint="partition by a plain, low-cardinality column"
        )

    @classmethod
    def conflicting(cls, why: str, where: str, hint: str) -> Self:
        return cls("E1209", why, where=where, hint=hint)

    @classmethod
    def value_out_of_range(cls, column: str, want: str, why: str, where: str | None = None) -> Self:
        return cls(
            "E1210",
            f"a value of column `{column}` does not fit {want}: {why}",
            where=where,
            hint="nothing was written; mend the rows, or widen the column",
        )


class ExpressionError(InputError):
    """A predicate or SQL text that does not parse or resolve."""

    # The position of the row that failed, where it is known.
    row: int | None = None

    @classmethod
    def syntax(cls, text: str, why: str, position: int | None = None) -> Self:
        made = cls("E1301", f"cannot parse `{text}`: {why}", hint="write it in Spark SQL")
        return made.placed_at(text, position)

    @classmethod
    def statement(cls, text: str, why: str, position: int | None, hint: str) -> Self:
        return cls("E1306", f"cannot read the statement: {why}", hint=hint).placed_at(text, position)

    @classmethod
    def not_known(cls, text: str, what: str, hint: str, position: int | None = None) -> Self:
        made = cls("E1302", f"{what} is not supported in expressions here", hint=hint)
        return made.placed_at(text, position)

    @classmethod
    def refused(cls, text: str, what: str, hint: str, position: int | None = None) -> Self:
        way_out = 'run the query with engine="spark"'
        lead = "" if "engine=" in hint else f" Or {way_out}" if hint.endswith(("?", ".")) else f", or {way_out}"
        made = cls("E1305", f"{what} is not known to give Spark's rows here", hint=hint + lead)
        return made.placed_at(text, position)

    @classmethod
    def wrong(cls, text: str, why: str, hint: str, position: int | None = None) -> Self:
        return cls("E1311", why, hint=hint).placed_at(text, position)

    @classmethod
    def no_fixpoint(cls, variables: str, rounds: int) -> Self:
        return cls(
            "E1312",
            f"the recursion of {variables} still finds new rows after {rounds} rounds",
            hint="nothing was changed; bound what it may reach, or raise most= if it needs more rounds",
        )

    @classmethod
    def failed(cls, text: str, why: str) -> Self:
        return cls(
            "E1303", f"evaluating `{text}` failed: {why}", hint="nothing was written; mend the rows or the expression"
        )

    @classmethod
    def query_failed(cls, text: str, why: str) -> Self:
        return cls("E1308", f"the query failed: {why}", where=_shortened(text), hint="mend the rows, or the query")

    @classmethod
    def native(cls, text: str, why: str, engine: str) -> Self:
        return cls("E1309", f"{engine} does not take this SQL: {why}", where=_shortened(text))

    @classmethod
    def spark(cls, text: str, why: str, position: int | None = None) -> Self:
        return cls("E1310", f"Spark does not take this SQL: {why}").placed_at(text, position)

    @classmethod
    def not_boolean(cls, text: str, kind: str) -> Self:
        made = cls("E1304", f"the condition `{text}` gives {kind}, not a boolean", hint="compare it with something")
        made.position = 0
        return made


def _shortened(text: str, longest: int = 200) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def underline(text: str, position: int | None) -> str:
    """``text`` with a caret under ``position``, for messages; of several lines, the one that holds it.

    >>> print(underline("select a\\nfrom b", 14))
    line 2: from b
                          ^
    """
    if position is None or not 0 <= position <= len(text):
        return text
    lead = ""
    if "\n" in text:
        number = text.count("\n", 0, position)
        start = text.rfind("\n", 0, position) + 1
        text, position, lead = text.split("\n")[number], position - start, f"line {number + 1}: "
    return f"{lead}{text}\n         {' ' * (position + len(lead))}^"


class ConstraintError(HeadwaterError, ValueError):
    """Data breaks a rule of the table; nothing was written."""

    @classmethod
    def not_null(cls, column: str, rows: int, where: str) -> Self:
        return cls(
            "E2001",
            f"column `{column}` is NOT NULL, but {rows} row(s) have none",
            where=where,
            hint="nothing was written; fill the values, or drop the rule with drop_not_null()",
        )

    @classmethod
    def check(cls, name: str, expression: str, rows: int, where: str) -> Self:
        return cls(
            "E2002",
            f"{rows} row(s) break the constraint `{name}`: {expression}",
            where=where,
            hint="nothing was written; mend the rows, or drop_constraint() first",
        )

    @classmethod
    def outside(cls, expression: str, rows: int, where: str) -> Self:
        return cls(
            "E2004",
            f"{rows} row(s) lie outside the condition of the overwrite: {expression}",
            where=where,
            hint="nothing was written; leave those rows out, or widen the condition so that it covers them",
        )

    @classmethod
    def generated(cls, column: str, expression: str, rows: int, where: str) -> Self:
        return cls(
            "E2003",
            f"{rows} row(s) give `{column}` another value than its definition: {expression}",
            where=where,
            hint="nothing was written; leave the column out, and it is computed",
        )

    @classmethod
    def absent_rows(cls, rows: int, first: str) -> Self:
        return cls(
            "E2101",
            f"{rows} row(s) to delete are not in the table, the first: {first}",
            hint="the change belongs to another version of the table; nothing was changed",
        )

    @classmethod
    def duplicate_key(cls, table: str, key: str) -> Self:
        return cls(
            "E2103",
            f"`{table}` would have two rows with the key {key}",
            hint="nothing was changed; upsert the row, or delete the other one first",
        )

    @classmethod
    def missing_row(cls, table: str, key: str) -> Self:
        return cls(
            "E2104",
            f"a row to delete is not in `{table}`, its key is {key}",
            hint="nothing was changed; delete by the key alone, or give the row as it is",
        )

    @classmethod
    def weight_overflow(cls) -> Self:
        return cls(
            "E2102",
            "the weight of a row does not fit 64 bits",
            hint="a row was added more often than can be counted: consolidate() smaller batches, and look for a loop",
        )


class UnsupportedError(HeadwaterError):
    """We know what is asked and refuse it, with the reason."""

    @classmethod
    def native(cls, engine: str) -> Self:
        return cls(
            "E3005",
            f"{engine} has no dialect of its own here",
            hint='leave out dialect="native": Spark SQL is the dialect',
        )

    @classmethod
    def writer_feature(cls, features: Sequence[str], where: str) -> Self:
        return cls(
            "E3001",
            f"the table needs writer features this version cannot honour: {', '.join(features)}",
            where=where,
            hint="nothing was written; write it with the engine that turned them on, or drop the feature there",
        )

    @classmethod
    def reader_feature(cls, features: Sequence[str], where: str) -> Self:
        return cls(
            "E3002",
            f"the table needs reader features this version cannot honour: {', '.join(features)}",
            where=where,
            hint="read it with the engine that turned them on, or drop the feature there",
        )

    @classmethod
    def operation(cls, what: str, why: str, hint: str) -> Self:
        return cls("E3003", f"{what}: {why}", hint=hint)

    @classmethod
    def column_type(cls, column: str, kind: str, hint: str) -> Self:
        return cls("E3004", f"column `{column}` has type {kind}, which cannot be handled here", hint=hint)


class ConflictError(HeadwaterError):
    """Another writer committed first, and retrying would not be safe."""

    @classmethod
    def lost(cls, what: str, version: int, operation: str, where: str) -> Self:
        return cls(
            "E4001",
            f"{what}, by version {version} ({operation})",
            where=where,
            hint="nothing was written; run the operation again on the new version",
        )

    @classmethod
    def too_many_retries(cls, attempts: int, where: str) -> Self:
        return cls(
            "E4002",
            f"lost the race for the next version {attempts} times",
            where=where,
            hint="too many writers commit at once: batch the writes, or raise HEADWATER_COMMIT_RETRIES",
        )

    @classmethod
    def state_locked(cls, owner: str, where: str) -> Self:
        return cls(
            "E4003",
            f"the state is being written already, by {owner}",
            where=where,
            hint="wait until that ends, or stop it; to read only, open the state with read_only=True",
        )


class CorruptionError(HeadwaterError):
    """What lies on storage is damaged."""

    @classmethod
    def log_entry(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5001",
            f"log entry `{path}` cannot be read: {why}",
            where=where,
            hint="restore that file from a backup; versions before it can still be read with at(version=)",
        )

    @classmethod
    def log_gap(cls, missing: int, where: str) -> Self:
        return cls(
            "E5002",
            f"the log has a gap: version {missing} is missing",
            where=where,
            hint="restore the missing file of `_delta_log`; versions before it can still be read",
        )

    @classmethod
    def checkpoint(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5003",
            f"checkpoint `{path}` cannot be read: {why}",
            where=where,
            hint="delete that file if the commits before it are still there: a new one is made at the next write",
        )

    @classmethod
    def data_file(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5004",
            f"data file `{path}` cannot be read: {why}",
            where=where,
            hint="restore the file, or restore() the table to a version without it",
        )

    @classmethod
    def deletion_vector(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5005",
            f"the deletion vector of `{path}` cannot be read: {why}",
            where=where,
            hint="restore the vector's file, or restore() the table to an earlier version",
        )

    @classmethod
    def state_file(cls, path: str, why: str, where: str) -> Self:
        return cls("E5006", f"file `{path}` is damaged: {why}", where=where, hint="restore it from a backup")

    @classmethod
    def no_metadata(cls, where: str) -> Self:
        return cls(
            "E5007",
            "the log has no metadata or protocol entry",
            where=where,
            hint="the first commits of the table were lost: restore `_delta_log` from a backup",
        )

    @classmethod
    def run_file(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5008",
            f"run file `{path}` cannot be used: {why}",
            where=where,
            hint="restore an older checkpoint that does not name it, or delete the state: it is computed again from its sources",
        )

    @classmethod
    def manifest(cls, path: str, why: str, where: str) -> Self:
        return cls(
            "E5009",
            f"checkpoint `{path}` of the state cannot be used: {why}",
            where=where,
            hint="restore an older checkpoint, or delete the state: it is computed again from its sources",
        )

    @classmethod
    def newer_state(cls, path: str, version: int, newest: int, where: str) -> Self:
        return cls(
            "E5010",
            f"`{path}` has format version {version}, and this Headwater reads up to {newest}",
            where=where,
            hint="read it with the Headwater that wrote it, or a later one; nothing was changed",
        )

    @classmethod
    def other_layout(cls, path: str, have: str, want: str, where: str) -> Self:
        return cls(
            "E5011",
            f"`{path}` holds rows of another layout: {have} instead of {want}",
            where=where,
            hint="the computation has changed since: delete the state, and it is computed again from its sources",
        )


class StorageError(HeadwaterError, OSError):
    """Storage refuses or fails."""

    @classmethod
    def denied(cls, path: str, why: str) -> Self:
        return cls("E6001", f"no permission: {why}", where=path, hint="check the folder's rights or the credentials")

    @classmethod
    def full(cls, path: str) -> Self:
        return cls("E6002", "no space is left on the device", where=path, hint="free some space; nothing was committed")

    @classmethod
    def failed(cls, path: str, why: str) -> Self:
        what = "that the endpoint is up" if "://" in path else "the disk"
        return cls("E6003", f"storage failed: {why}", where=path, hint=f"check {what}, then try again")

    @classmethod
    def bad_url(cls, url: str) -> Self:
        return cls(
            "E6004", f"`{url}` is not a location Headwater can open", hint="use a path, file://… or s3://bucket/prefix"
        )

    @classmethod
    def not_a_folder(cls, path: str) -> Self:
        return cls("E6007", "a file lies where a folder is wanted", where=path, hint="give the path of a folder")

    @classmethod
    def no_bucket(cls, bucket: str, path: str) -> Self:
        return cls(
            "E6006", f"there is no bucket `{bucket}`", where=path, hint="create it, or check its name and the endpoint"
        )

    @classmethod
    def unknown_result(cls, version: int, path: str, why: str) -> Self:
        return cls(
            "E6005",
            f"it is not known whether version {version} was committed: {why}",
            where=path,
            hint="look at history() before writing the same again; with txn=(app_id, number) a repeat is harmless",
        )

    @property
    def is_refusal(self) -> bool:
        """Whether storage said no for certain, so that nothing will come of it later."""
        return self.code in ("E6001", "E6002")

    def __str__(self) -> str:  # OSError's own __str__ would win otherwise
        return HeadwaterError.__str__(self)


class CancelledError(HeadwaterError):
    """A query was stopped before it had given all its rows."""

    @classmethod
    def query(cls, statement: str) -> Self:
        return cls(
            "E1402", f"the {statement} was cancelled", hint="run it again; rows that were read before may be only some"
        )


class SetupError(HeadwaterError):
    """This machine lacks something."""

    @classmethod
    def no_java(cls, found: str | None, minimum: int) -> Self:
        what = f"Java {found} is too old" if found else "Java was not found"
        return cls(
            "E7001",
            f"{what}: Spark needs Java {minimum} or newer",
            hint=f"install a JDK {minimum}+ (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME to one",
        )

    @classmethod
    def missing_package(cls, package: str, what: str, extra: str | None = None) -> Self:
        how = f"pip install 'headwater[{extra}]'" if extra else f"pip install {package}"
        return cls("E7002", f"{what} needs the package `{package}`", hint=how)

    @classmethod
    def out_of_memory(cls, limit_bytes: int) -> Self:
        limit = f"{limit_bytes:,} bytes" if limit_bytes else "what this machine has"
        return cls(
            "E7005",
            f"the query needs more memory than it may use ({limit})",
            hint="raise HEADWATER_MEMORY_LIMIT_BYTES, give it a HEADWATER_SPILL_DIR, or read fewer rows",
        )

    @classmethod
    def spark_failed(cls, why: str) -> Self:
        return cls("E7003", f"Spark did not start: {why}", hint="run `headwater doctor` to see what is missing")

    @classmethod
    def session_conf(cls, name: str, found: str, wanted: str) -> Self:
        return cls(
            "E7006",
            f"the Spark session has {name}={found}, so that it would answer otherwise than the other engines",
            hint=f'spark.conf.set("{name}", "{wanted}"), or let hw.spark() make the session',
        )

    @classmethod
    def s3_server_failed(cls, why: str) -> Self:
        return cls("E7004", f"the S3 server did not come up: {why}", hint="check that loopback ports can be bound")
