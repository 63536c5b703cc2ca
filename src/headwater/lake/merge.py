"""Merge: one commit that brings a source's rows into a table.

The price is the change, not the table. Where the condition equates columns of both sides, files and row groups are
ruled out by the range of the source's keys, and of the rest only the key columns are read and tested against the
set of source keys. The few rows that remain are joined exactly. Of the rows that change, only the columns that a
clause needs are read; then the old rows are marked as deleted and the new ones written to one small file.

Clauses are tried in the order given, and the first whose condition is true decides, as in SQL. A target row that
two source rows would change is an error, since the result would depend on their order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.base.errors import Action, InputError, SchemaError
from headwater.lake import data_files, edit, find, transaction
from headwater.lake.conflicts import Proposal
from headwater.lake.conform import Rows, as_rows, plain_columns
from headwater.lake.joined import evaluate_beside
from headwater.lake.matching import FILE, SOURCE_ROW, Matches, match_rows
from headwater.lake.modify import check_may_change, parse_assignments
from headwater.lake.scan import POSITION, Positions
from headwater.lake.snapshot import Snapshot, Target
from headwater.lake.transaction import Committed
from headwater.lake.write import SchemaMode, evolve, prepared
from headwater.sql import expressions
from headwater.sql.expressions import Expression
from headwater.sql.fragment import Fragment, spelled

__all__ = ["Clause", "Merge"]

When = Literal["matched", "not matched", "not matched by source"]
Condition = str | Fragment | None
Assignments = Mapping[str, str | Fragment]


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN … THEN …; ``assignments`` is None for a delete, and ``all_columns`` takes the source's row."""

    when: When
    condition: str | Fragment | None = None
    assignments: Mapping[str, str | Fragment] | None = None
    all_columns: bool = False

    @property
    def deletes(self) -> bool:
        return self.assignments is None and not self.all_columns


@dataclass(slots=True)
class Merge:
    """A merge being put together; nothing happens before `execute`.

    >>> import headwater as hw, tempfile
    >>> lake = hw.connect(tempfile.mkdtemp())
    >>> t = lake.write("cards", [{"id": 1, "limit": 10}, {"id": 2, "limit": 20}])
    >>> news = [{"id": 2, "limit": 99}, {"id": 3, "limit": 30}]
    >>> done = (lake.table("cards").merge(news, on="t.id = s.id")
    ...     .when_matched_update_all().when_not_matched_insert_all().execute())
    >>> done["numTargetRowsUpdated"], done["numTargetRowsInserted"]
    (1, 1)
    """

    target: Target
    source: pa.Table
    on: str | Fragment
    target_alias: str = "t"
    source_alias: str = "s"
    schema_mode: SchemaMode = "strict"
    if_version: int | None = None
    clauses: list[Clause] = field(default_factory=list)

    @classmethod
    def of(cls, target: Target, source: Any, on: str | Fragment | Sequence[str], **options: Any) -> Merge:
        rows = source if isinstance(source, Rows) else as_rows(source)
        merge = cls(target, rows.to_table(), "", **options)
        if merge.target_alias.lower() == merge.source_alias.lower():
            raise InputError.bad_argument("source_alias", merge.source_alias, "another name than the target's")
        if not isinstance(on, str | Fragment):
            t, s = merge.target_alias, merge.source_alias
            on = " AND ".join(f"{t}.`{c.replace('`', '``')}` = {s}.`{c.replace('`', '``')}`" for c in on)
        if not str(on).strip():
            raise InputError.bad_argument("on", on, 'a condition such as "t.id = s.id", or a list of key columns')
        merge.on = on
        return merge

    def when_matched_update(self, assignments: Assignments, *, condition: Condition = None) -> Merge:
        return self._with(Clause("matched", condition, dict(assignments)))

    def when_matched_update_all(self, *, condition: Condition = None) -> Merge:
        return self._with(Clause("matched", condition, all_columns=True))

    def when_matched_delete(self, *, condition: Condition = None) -> Merge:
        return self._with(Clause("matched", condition))

    def when_not_matched_insert(self, assignments: Assignments, *, condition: Condition = None) -> Merge:
        return self._with(Clause("not matched", condition, dict(assignments)))

    def when_not_matched_insert_all(self, *, condition: Condition = None) -> Merge:
        return self._with(Clause("not matched", condition, all_columns=True))

    def when_not_matched_by_source_update(self, assignments: Assignments, *, condition: Condition = None) -> Merge:
        return self._with(Clause("not matched by source", condition, dict(assignments)))

    def when_not_matched_by_source_delete(self, *, condition: Condition = None) -> Merge:
        return self._with(Clause("not matched by source", condition))

    def _with(self, clause: Clause) -> Merge:
        earlier = [c for c in self.clauses if c.when == clause.when and c.condition is None]
        if earlier:
            raise InputError.bad_clause(
                f"a clause follows one that takes every row that is {clause.when}",
                "put the one without a condition last",
            )
        self.clauses.append(clause)
        return self

    def execute(self) -> Committed:
        """Run the merge and commit it."""
        if not self.clauses:
            raise InputError.bad_clause("the merge has no clause", Action("add_merge_clause"))
        return transaction.run(self.target, lambda base: _Run(self, base).propose(), if_version=self.if_version)


class _Run:
    """One attempt at a merge, on one snapshot."""

    def __init__(self, merge: Merge, base: Snapshot) -> None:
        self.merge, self.before = merge, base
        adds_columns = any(c.all_columns for c in merge.clauses)
        self.base = evolve(base, merge.source.schema, merge.schema_mode if adds_columns else "strict")
        self.source = plain_columns(merge.source, self.base.schema, base.where)
        self.schemas = {merge.target_alias: self.base.arrow_schema, merge.source_alias: self.source.schema}
        self.on = expressions.parse_condition(merge.on, schema=self.schemas)
        self.clauses = [(c, self._condition(c), self._assignments(c)) for c in merge.clauses]

    def _condition(self, clause: Clause) -> Expression | None:
        if clause.condition is None:
            return None
        return expressions.parse_condition(clause.condition, schema=self._visible(clause))

    def _visible(self, clause: Clause) -> dict[str, pa.Schema]:
        hidden = {"not matched": self.merge.target_alias, "not matched by source": self.merge.source_alias}
        return {alias: s for alias, s in self.schemas.items() if alias != hidden.get(clause.when)}

    def _assignments(self, clause: Clause) -> dict[str, Expression]:
        if clause.all_columns:
            alias, lower = self.merge.source_alias, {n.lower(): n for n in self.source.column_names}
            names = [f.name for f in self.base.schema.fields if not f.generation and f.name.lower() in lower]
            extra = [n for n in self.source.column_names if n not in self.base.schema]
            if extra:
                raise SchemaError.extra_columns(extra, self.base.schema.names, self.base.where)
            texts: Assignments = {n: f"{alias}.`{lower[n.lower()].replace('`', '``')}`" for n in names}
        else:
            texts = dict(clause.assignments or {})
        return parse_assignments(self.base, texts, self._visible(clause))

    # -------------------------------------------------------------- columns

    def _needed(self, when: When) -> list[str]:
        """The target's columns that the clauses of one kind read."""
        alias, needed = self.merge.target_alias, set()
        for clause, condition, assignments in self.clauses:
            if clause.when != when:
                continue
            for e in [condition, *assignments.values()]:
                needed |= {name for a, name in e.columns if a == alias} if e is not None else set()
            if not clause.deletes:
                needed |= {f.name for f in self.base.schema.fields if f.name not in assignments and not f.generation}
        if self.before.writes_change_feed and any(c.when == when for c, *_ in self.clauses):
            needed = set(self.base.schema.names)
        return [n for n in self.base.schema.names if n in needed]

    # -------------------------------------------------------------- the merge itself

    def propose(self) -> Proposal:
        source = self.source.append_column(SOURCE_ROW, pa.array(np.arange(self.source.num_rows)))
        by_source = any(c.when == "not matched by source" for c, *_ in self.clauses)
        matches = match_rows(self.base, source, self.on, self.merge, whole_target=by_source)
        # A source row that met a target row was not inserted, so that target row must stay.
        self.matched_files = frozenset(pc.unique(matches.addresses[FILE]).to_pylist())
        parts = [self._matched(matches), self._not_matched(matches)]
        if by_source:
            parts.append(self._not_matched_by_source(matches))
        return self._proposal(parts, matches)

    def _matched(self, matches: Matches) -> _Outcome:
        if not any(c.when == "matched" for c, *_ in self.clauses) or not matches.num_pairs:
            return _Outcome()
        target = matches.fetch_pairs(self._needed("matched"))
        source = self.source.take(pa.array(matches.source_rows))
        outcome = self._decide("matched", target, source, matches.addresses)
        outcome.check_unambiguous(self.base.where)
        outcome.delete_once()
        return outcome

    def _not_matched(self, matches: Matches) -> _Outcome:
        if not any(c.when == "not matched" for c, *_ in self.clauses):
            return _Outcome()
        alone = np.setdiff1d(np.arange(self.source.num_rows), matches.source_rows)
        return self._decide("not matched", None, self.source.take(pa.array(alone)), None)

    def _not_matched_by_source(self, matches: Matches) -> _Outcome:
        addresses = matches.unmatched_addresses()
        target = matches.fetch(addresses, self._needed("not matched by source"))
        return self._decide("not matched by source", target, None, addresses)

    def _decide(
        self, when: When, target: pa.Table | None, source: pa.Table | None, addresses: pa.Table | None
    ) -> _Outcome:
        """Give each row to the first clause that takes it."""
        given = {self.merge.target_alias: target, self.merge.source_alias: source}
        tables: dict[str, pa.Table] = {a: t for a, t in given.items() if t is not None}
        left = np.arange(max(t.num_rows for t in tables.values()))
        outcome = _Outcome()
        for clause, condition, assignments in self.clauses:
            if clause.when != when or not len(left):
                continue
            rows = {a: t.take(pa.array(left)) for a, t in tables.items()}
            taken = np.ones(len(left), bool)
            if condition is not None:
                met = evaluate_beside(condition, rows)
                taken = pc.fill_null(met, False).to_numpy(zero_copy_only=False)
            chosen = {a: t.filter(pa.array(taken)) for a, t in rows.items()}
            before = chosen.get(self.merge.target_alias)
            where = None if addresses is None else addresses.take(pa.array(left[taken]))
            after = None if clause.deletes else self._row(chosen, assignments, int(taken.sum()))
            outcome.take(when, clause, where, before, after)
            left = left[~taken]
        return outcome

    def _row(self, tables: dict[str, pa.Table], assignments: Mapping[str, Expression], length: int) -> pa.Table:
        old = tables.get(self.merge.target_alias)
        columns = {}
        for f in self.base.schema.fields:
            if f.name in assignments:
                columns[f.name] = evaluate_beside(assignments[f.name], tables)
            elif not f.generation:
                columns[f.name] = old[f.name] if old is not None else pa.nulls(length, f.arrow.type)
        table = pa.table(columns)
        fitted = prepared(Rows(table.schema, iter(table.to_batches())), self.base)
        return fitted.to_table()

    def _proposal(self, parts: Sequence[_Outcome], matches: Matches) -> Proposal:
        deleted: dict[str, Positions | None] = {}
        for part in parts:
            for path, positions in part.positions().items():
                old = deleted.get(path)
                deleted[path] = positions if old is None else np.union1d(old, positions)
        if deleted:
            check_may_change(self.before)
        new = [t for part in parts for t in part.new]
        cut = edit.remove_rows(self.base, deleted)
        layout = data_files.Layout(self.base.state.metadata)
        adds = data_files.write_rows(self.base.storage, layout, [b for t in new for b in t.to_batches()])
        changed: dict[str, Any] = {}
        if self.base is not self.before and (cut.removes or adds):
            changed = {"metadata": self.base.state.metadata}
            if self.base.state.protocol != self.before.state.protocol:
                changed["protocol"] = self.base.state.protocol
        updated, inserted = sum(p.updated for p in parts), sum(p.inserted for p in parts)
        metrics = {
            "numSourceRows": self.source.num_rows,
            "numTargetRowsUpdated": updated,
            "numTargetRowsInserted": inserted,
            "numTargetRowsDeleted": sum(p.deleted for p in parts),
            "numTargetFilesAdded": len(adds),
            **{k: v for k, v in cut.metrics.items() if k != "numDeletedRows"},
        }
        return Proposal(
            "MERGE",
            {"predicate": spelled(self.merge.on)},
            adds=cut.adds + adds,
            removes=cut.removes,
            cdc=self._feed(parts) if (cut.removes or adds) else [],
            metrics=metrics,
            reads=lambda files: bool(find.candidate_files(self.base, matches.conjuncts, files)),
            relies_on=self.matched_files,
            **changed,
        )

    def _feed(self, parts: Sequence[_Outcome]) -> list[Any]:
        if not self.base.writes_change_feed:
            return []
        feed: dict[str, list[pa.Table]] = {}
        for part in parts:
            for kind, rows in part.feed.items():
                feed.setdefault(kind, []).extend(rows)
        tables = {kind: pa.concat_tables(rows).select(self.base.schema.names) for kind, rows in feed.items()}
        return data_files.change_feed(self.base.state.metadata, self.base.storage, tables)


@dataclass(slots=True)
class _Outcome:
    """What the clauses of one kind decided: addresses of rows that go, and rows that come."""

    addresses: list[pa.Table] = field(default_factory=list)
    new: list[pa.Table] = field(default_factory=list)
    feed: dict[str, list[pa.Table]] = field(default_factory=dict)
    updated: int = 0
    inserted: int = 0
    deleted: int = 0
    changing: list[pa.Table] = field(default_factory=list)

    def take(
        self, when: When, clause: Clause, where: pa.Table | None, before: pa.Table | None, after: pa.Table | None
    ) -> None:
        if where is not None:
            self.addresses.append(where)
            if not clause.deletes:
                self.changing.append(where)
        if after is not None:
            self.new.append(after)
        if when == "not matched":
            assert after is not None
            self.inserted += after.num_rows
            self.feed.setdefault("insert", []).append(after)
        elif clause.deletes:
            assert where is not None and before is not None
            self.deleted += where.num_rows
            self.feed.setdefault("delete", []).append(before)
        else:
            assert after is not None and before is not None
            self.updated += after.num_rows
            self.feed.setdefault("update_preimage", []).append(before)
            self.feed.setdefault("update_postimage", []).append(after)

    def check_unambiguous(self, where: str) -> None:
        every = pa.concat_tables(self.addresses) if self.addresses else None
        if every is None or not self.changing:
            return  # several source rows may agree that a row goes
        counts = every.group_by([FILE, POSITION]).aggregate([([], "count_all")])
        twice = int(pc.sum(pc.greater(counts["count_all"], 1)).as_py() or 0)
        if twice:
            raise InputError.ambiguous_merge(twice, where)

    def delete_once(self) -> None:
        """A row that several source rows delete goes once; `check_unambiguous` saw to the rest."""
        if self.changing or len(self.addresses) == 0:
            return
        every, before = pa.concat_tables(self.addresses), pa.concat_tables(self.feed["delete"])
        numbered = every.append_column("at", pa.array(np.arange(every.num_rows)))
        first = numbered.group_by([FILE, POSITION]).aggregate([("at", "min")])["at_min"].sort()
        self.addresses, self.feed["delete"] = [every.take(first)], [before.take(first)]
        self.deleted = len(first)

    def positions(self) -> dict[str, Positions]:
        if not self.addresses:
            return {}
        every = pa.concat_tables(self.addresses)
        grouped = every.group_by(FILE).aggregate([(POSITION, "distinct")])
        return {
            path: np.sort(np.asarray(rows, dtype=np.int64))
            for path, rows in zip(grouped[FILE].to_pylist(), grouped[f"{POSITION}_distinct"].to_numpy(), strict=True)
        }
