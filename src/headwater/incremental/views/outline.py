"""Views that a project declares: what one would be, and whether the one that is there is it.

A declaration is read exactly as the definition of a view is, but against columns that are given, since what it reads
may not be made yet. What cannot be kept up to date is refused here too, before anything is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from headwater.base.errors import InputError, NotFoundError, UnsupportedError
from headwater.base.schema import Schema
from headwater.derived.environment import Environment
from headwater.derived.outline import Outline, ShapeOf
from headwater.incremental.views.declaration import define, found_view
from headwater.incremental.views.definition import Definition, Policy, missing, same_functions
from headwater.incremental.views.output_columns import check_output
from headwater.incremental.views.output_table import Told
from headwater.incremental.views.refusals import about_keeping
from headwater.incremental.views.view import View
from headwater.sql.functions.user import UserFunction
from headwater.sql.lineage import lineage

__all__ = ["declared", "difference", "outline"]


def outline(options: Mapping[str, Any], shape_of: ShapeOf, functions: Mapping[str, UserFunction]) -> Outline:
    """What a view with these options would be."""
    sql, policy, shards = _meant(options)

    def schema_of(name: str) -> tuple[str, Schema]:
        shape = shape_of(name)
        return shape.name, shape.schema

    meant = Definition.read(sql, policy, shards, schema_of, None, functions)
    check_output(meant.schema, sql)
    if policy != "full":
        from headwater.incremental import planning

        try:
            planning.check(meant.plan, sql)
        except UnsupportedError as refusal:
            about_keeping(refusal)
            raise
    tables = {relation: table for relation, (table, _) in meant.tables.items()}
    traced = lineage(meant.plan)
    return Outline(
        reads=meant.reads,
        schema=Schema.from_arrow(meant.schema),
        lineage={c.name: _named(c.sources, tables) for c in traced.columns},
        conditions=_named(traced.conditions, tables),
        full="its policy is `full`" if policy == "full" else None,
    )


def _named(columns: Any, tables: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(f"{tables.get(c.relation, c.relation)}.{c.name}" for c in columns))


def difference(name: str, options: Mapping[str, Any], meant: Outline | None, environment: Environment) -> str | None:
    """Why the view of that name is not the one with these options; None if it is."""
    sql, policy, shards = _meant(options)
    try:
        view = found_view(name, environment)
    except InputError as error:
        return error.message
    if view.definition != sql:
        return "its query was changed"
    told = _told(options)
    if _is_the_same(view, sql, policy, shards, told, environment):
        return None
    if not view.has(sql, policy=policy, shards=shards, told=told):
        same = view.policy == policy and view.has(sql, policy=policy, shards=shards)
        return (
            "its description or properties were changed"
            if same
            else "its options, functions or the columns that it reads were changed"
        )
    given = None if meant is None or meant.schema is None else meant.schema.arrow
    if given is not None and [(f.name, f.type) for f in given] != [(f.name, f.type) for f in view.schema]:
        return "its query gives other columns now"
    return None


def _is_the_same(view: View, sql: str, policy: Policy, shards: int, told: Told, environment: Environment) -> bool:
    """Whether a view has these options, and its sources the very columns that it was defined over: without reading
    the query.
    """
    base = view.table.snapshot
    stored = Definition.of(base)
    if stored is None or (stored.sql, stored.policy, stored.shards) != (sql, policy, shards):
        return False
    metadata = base.state.metadata
    if told.comment is not None and metadata.description != told.comment:
        return False
    if not set((told.properties or {}).items()) <= set(metadata.configuration.items()):
        return False
    if missing(stored.functions, environment.functions) or not same_functions(stored.functions, environment.functions):
        return False
    try:
        return all(environment.table(t).snapshot.schema.to_json() == text for t, text in stored.tables.values())
    except NotFoundError:  # refreshing says so
        return False


def declared(name: str, options: Mapping[str, Any], environment: Environment) -> View:
    """The view with these options, made or changed."""
    sql, policy, shards = _meant(options)
    if not environment.table(name).exists():
        told = _told(options)
        return define(
            name, sql, environment, policy=policy, shards=shards, properties=told.properties, comment=told.comment
        )
    view = found_view(name, environment)
    view.redefine(sql, policy=policy, shards=shards, told=_told(options))
    return view


def _told(options: Mapping[str, Any]) -> Told:
    return Told(options.get("properties"), options.get("comment"))


def _meant(options: Mapping[str, Any]) -> tuple[str, Policy, int]:
    return options["sql"], cast("Policy", options.get("policy", "auto")), int(options.get("shards", 1))
