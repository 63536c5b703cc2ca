"""Feature tables as a kind of derived artefact: how they are defined and opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headwater.base.errors import InputError, NotFoundError, UnsupportedError
from headwater.base.feature_registry import feature
from headwater.derived import upkeep
from headwater.derived.environment import Environment
from headwater.derived.kinds import Kind
from headwater.lake.snapshot import Snapshot
from headwater.sql.statements import CreateArtefact
from headwater.timeseries.features import output_table
from headwater.timeseries.features.definition import WORDS, Definition, Policy
from headwater.timeseries.features.feature_table import FeatureTable
from headwater.timeseries.features.function import Build, remember
from headwater.timeseries.features.outline import difference, outline
from headwater.timeseries.features.source_lake import SourceLake, built

if TYPE_CHECKING:
    from headwater.derived.outline import Outline, ShapeOf
    from headwater.sql.functions.user import UserFunction

__all__ = ["KIND", "FeaturesKind", "define"]


class FeaturesKind(Kind):
    """Feature tables."""

    def open(self, name: str, environment: Environment, base: Snapshot | None = None) -> FeatureTable:
        """The feature table of that name; its function need not be at hand."""
        table = environment.table(name)
        if base is not None:
            return FeatureTable(name, table.pinned_to(base), environment)
        if not table.exists():
            raise NotFoundError.derived(name, WORDS, environment.names(WORDS.name), environment.root.url)
        if Definition.of(table.snapshot) is None:
            raise InputError.not_derived(name, WORDS, table.location)
        return FeatureTable(table.name, table, environment)

    def create(self, statement: CreateArtefact, environment: Environment) -> FeatureTable:
        """There is no such statement."""
        raise UnsupportedError.operation(
            "CREATE FEATURE TABLE", "feature tables are defined in Python", "lake.features(name, function)"
        )

    def outline(
        self, name: str, options: Mapping[str, Any], shape_of: ShapeOf, functions: Mapping[str, UserFunction]
    ) -> Outline:
        """What a feature table with these options would be: ``function``, ``policy``."""
        del name, functions
        return outline(options, shape_of)

    def difference(self, name: str, options: Mapping[str, Any], meant: Outline, environment: Environment) -> str | None:
        """Why the feature table of that name is not the one with these options."""
        del meant
        if not environment.table(name).exists():
            return "there is no feature table of that name"
        self.know(name, options, environment)
        found = self.open(name, environment)
        return difference(found.meant, found.wanted(unbuilt=True), options.get("policy"))

    def know(self, name: str, options: Mapping[str, Any], environment: Environment) -> None:
        """The function is that of the feature table, whoever asks for it from now on."""
        remember(environment.root.url, environment.table(name).name, options["function"])

    def define(self, name: str, options: Mapping[str, Any], environment: Environment) -> FeatureTable:
        """The feature table with these options; one that is there is computed by them from its next refresh on."""
        return define(name, options["function"], environment, policy=options.get("policy"))

    def finish(self, environment: Environment) -> None:
        """Wait until no files are put together any more."""
        upkeep.finish(f"features {environment.root.url} ")


KIND = FeaturesKind()


def define(name: str, build: Build | None, environment: Environment, *, policy: Policy | None) -> FeatureTable:
    """The feature table of that name, computed by this function; made if it is not there.

    One that was computed by another function keeps its rows until it is refreshed.
    """
    declared, table = feature.get(name), environment.table(name)
    if build is None and declared is not None and not table.exists():
        build = declared.function
    if build is None:
        return _with_policy(KIND.open(name, environment), policy)
    if not callable(build):
        raise InputError.bad_argument("build", build, "a function that takes a lake and gives a stream")
    if policy is None and declared is not None and declared.function is build:
        policy = declared.options.get("policy")
    remember(environment.root.url, table.name, build)
    if table.exists():
        return _with_policy(KIND.open(table.name, environment), policy)
    lake = SourceLake(environment, lambda one: environment.table(one).snapshot, {}, unbuilt=True)
    meant = Definition.of_stream(build, built(build, lake), policy or "auto")
    environment.check_free(table.name)
    if output_table.create(table.storage, output_table.metadata_for(table.name, meant), meant) is None:
        return define(name, build, environment, policy=policy)  # somebody else was quicker
    return FeatureTable(table.name, table, environment)


def _with_policy(found: FeatureTable, policy: Policy | None) -> FeatureTable:
    """The same, to be refreshed by this policy from now on."""
    if policy is not None and policy != found.policy:
        output_table.redefine(found.table.snapshot, replace(found.meant, policy=policy).checked())
    return found
