"""Views as a kind of derived artefact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from headwater.base.errors import InputError
from headwater.derived.environment import Environment
from headwater.derived.kinds import Kind
from headwater.derived.outline import Outline, ShapeOf
from headwater.incremental.views import outline, tidying
from headwater.incremental.views.ddl import POLICY, SHARDS
from headwater.incremental.views.declaration import define, found_view
from headwater.incremental.views.definition import Policy
from headwater.incremental.views.view import View
from headwater.lake.snapshot import Snapshot
from headwater.sql.functions.user import UserFunction
from headwater.sql.statements import CreateArtefact, CreateView

__all__ = ["KIND", "ViewKind"]


class ViewKind(Kind):
    """Materialized views."""

    def open(self, name: str, environment: Environment, base: Snapshot | None = None) -> View:
        """The view of that name; its functions need not be registered."""
        if base is None:
            return found_view(name, environment)
        return View(name, environment.table(name).pinned_to(base), environment)

    def create(self, statement: CreateArtefact, environment: Environment) -> View:
        """CREATE MATERIALIZED VIEW."""
        assert isinstance(statement, CreateView)
        given = statement.properties
        shards = given.get(SHARDS, "1")
        if not shards.isdecimal():
            raise InputError.bad_property(SHARDS, shards, "a whole number")
        with statement.query.placed():
            return define(
                statement.table,
                statement.query.text,
                environment,
                policy=cast("Policy", given.get(POLICY, "auto")),
                shards=int(shards),
                mode=statement.mode,
                properties={k: v for k, v in given.items() if k not in (POLICY, SHARDS)},
                comment=statement.comment,
            )

    def outline(
        self, name: str, options: Mapping[str, Any], shape_of: ShapeOf, functions: Mapping[str, UserFunction]
    ) -> Outline:
        """What a view with these options would be: ``sql``, ``policy``, ``shards``, ``comment``,
        ``properties``.
        """
        return outline.outline(options, shape_of, functions)

    def difference(self, name: str, options: Mapping[str, Any], meant: Outline, environment: Environment) -> str | None:
        """Why the view of that name is not the one with these options."""
        return outline.difference(name, options, meant, environment)

    def define(self, name: str, options: Mapping[str, Any], environment: Environment) -> View:
        """The view with these options, made or changed."""
        return outline.declared(name, options, environment)

    def finish(self, environment: Environment) -> None:
        """Wait until no state is saved and no files are put together any more."""
        tidying.finish(environment.root)


KIND = ViewKind()
