"""Declaring views: opening the one of a name, and making one or giving it another definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from headwater.base.errors import InputError, NotFoundError
from headwater.derived.environment import Environment
from headwater.incremental.views import output_table
from headwater.incremental.views.definition import Definition, Policy
from headwater.incremental.views.output_table import Told
from headwater.incremental.views.reading import read_definition
from headwater.incremental.views.view import View
from headwater.incremental.views.words import WORDS

__all__ = ["define", "found_view", "open_view"]

Mode = Literal["open", "replace", "error", "ignore"]


def open_view(name: str, environment: Environment) -> View:
    """The view of that name; its functions have to be at hand."""
    view = found_view(name, environment)
    view.check_functions()
    return view


def found_view(name: str, environment: Environment) -> View:
    """The view of that name, to be defined anew or dropped."""
    table = environment.table(name)
    if not table.exists():
        raise NotFoundError.derived(name, WORDS, environment.names(WORDS.name), environment.root.url)
    if Definition.of(table.snapshot) is None:
        raise InputError.not_derived(name, WORDS, table.location)
    return View(table.name, table, environment)


def define(
    name: str,
    sql: str,
    environment: Environment,
    *,
    policy: Policy = "auto",
    shards: int = 1,
    mode: Mode = "open",
    properties: Mapping[str, str] | None = None,
    comment: str | None = None,
) -> View:
    """The view of that name with this definition, made or changed where it has to be.

    ``mode`` is about a view that is there: it is opened if it has this text, and else gets it; gets it in any case, as
    it is to be read now; is an error; or stays as it is.
    """
    output_table.check_properties(properties or {})
    table = environment.table(name)
    if table.exists():
        view = found_view(name, environment)
        if mode == "error":
            raise InputError.derived_exists(name, WORDS, table.location)
        told = Told(properties, comment, wholly=mode == "replace")
        if mode == "replace" or (mode == "open" and not view.has(sql, policy=policy, shards=shards, told=told)):
            view.redefine(sql, policy=policy, shards=shards, told=told)
        return view
    meant = read_definition(table.name, sql, policy, shards, environment)
    metadata = output_table.metadata_for(table.name, meant.schema, properties=properties, comment=comment)
    environment.check_free(table.name)
    if output_table.create(table.storage, metadata, meant) is None:  # somebody else was quicker
        return define(
            name, sql, environment, policy=policy, shards=shards, mode=mode, properties=properties, comment=comment
        )
    return View(table.name, table, environment)
