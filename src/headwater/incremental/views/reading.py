"""Reading the query of a view: names are looked up in the lake, and what cannot be maintained is refused."""

from __future__ import annotations

from headwater.base.errors import InputError, UnsupportedError
from headwater.base.schema import Schema
from headwater.derived.cycles import cycle
from headwater.derived.environment import Environment
from headwater.derived.lookup import Lookup
from headwater.incremental.views import live as lives
from headwater.incremental.views.definition import Definition, Policy
from headwater.incremental.views.output_columns import check_output, place_of
from headwater.incremental.views.refusals import about_keeping
from headwater.incremental.views.words import WORDS

__all__ = ["read_definition"]


def read_definition(name: str, sql: str, policy: Policy, shards: int, environment: Environment) -> Definition:
    """The definition of a view by this query."""
    lookup = Lookup(environment)

    def schema_of(wanted: str) -> tuple[str, Schema]:
        found = environment.table(wanted)
        schema = found.snapshot.schema
        ring = cycle(name, found.name, lookup.reads)
        if ring is not None:
            raise InputError.derived_cycle(ring, WORDS).placed_at(sql, place_of(sql, found.name))
        return found.name, schema

    meant = Definition.read(sql, policy, shards, schema_of, environment.analyze, environment.functions)
    check_output(meant.schema, sql)
    if policy != "full":
        from headwater.incremental import planning

        try:
            planning.check(meant.plan, sql)
        except UnsupportedError as refusal:
            about_keeping(refusal)
            raise
        lives.built(meant)
    return meant
