"""Migration: a Headwater project from the models, sources, tests and descriptions of a dbt project.

Every file of the dbt project is either taken or listed with the reason why it was not; what is taken in part says what
is missing. Nothing of the dbt project is changed, and nothing is written before all of it has been read.

What stays the same: a model is a view of its file's name, its description and tags come with it, ``ephemeral`` models
are views too, data tests are taken with their severity and condition (`data_tests`). What a source is called in the
lake is its ``identifier``, or the table's name, or ``source.table`` where that name is taken (`sources`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headwater.base.config.document import read_document
from headwater.base.errors import HeadwaterError, ProjectError
from headwater.base.spark_text import plain_name
from headwater.derived.dependencies import reachable
from headwater.pipeline.dbt.data_tests import Names, TakenTest, generic_test, parts, singular_test, without_waiting
from headwater.pipeline.dbt.jinja import NotTaken
from headwater.pipeline.dbt.sources import INHERITED, left_out, quoted, source_lines, source_names
from headwater.pipeline.schema import SCHEMA_LINE, keep_schema
from headwater.pipeline.view_file import read_text

__all__ = ["Migration", "migrate"]

_PROJECT = "dbt_project.yml"
_OTHER = {
    "macros": ("macro-paths", "macros are run by dbt"),
    "snapshots": ("snapshot-paths", "a Delta table keeps its versions: read VERSION AS OF"),
    "seeds": ("seed-paths", 'load it once: headwater sql -c "CREATE TABLE … AS SELECT …"'),
    "analyses": ("analysis-paths", "run it with headwater sql -f"),
}
_IGNORED_CONFIG = {
    "materialized": "",
    "unique_key": "a view follows inserts, updates and deletes of its sources by itself",
    "incremental_strategy": "a view is maintained incrementally by itself",
    "on_schema_change": "a view that is defined again gets its new columns",
    "file_format": "views are Delta tables",
    "partition_by": "the rows of a view lie where its changes put them",
    "cluster_by": "the rows of a view lie where its changes put them",
    "schema": "a lake has one set of names",
    "alias": "",
    "tags": "",
    "enabled": "",
    "description": "",
}
_TAKEN_OF_PROJECT = {"name", "version", "config-version", "profile", "vars", "require-dbt-version"}
"""What of ``dbt_project.yml`` is taken, or says nothing of the project itself; paths are, too."""
_TAKEN_OF_MODEL = {"name", "description", "config", "columns", "tests", "data_tests", "tags"}
_TAKEN_OF_COLUMN = {"name", "tests", "data_tests"}
_TAKEN_OF_SOURCE = {"name", "tables", "freshness", "config", *INHERITED}


@dataclass
class Migration:
    """What was taken of a dbt project, and what was not."""

    files: list[str] = field(default_factory=list)
    not_taken: list[str] = field(default_factory=list)
    models: int = 0
    sources: int = 0

    def summary(self) -> str:
        """One line."""
        lost = f"; {len(self.not_taken)} things were not taken" if self.not_taken else ""
        return f"{self.models} models and {self.sources} sources taken{lost}"

    def as_dict(self) -> dict[str, Any]:
        """The same facts for ``--json``."""
        return {"files": self.files, "not_taken": self.not_taken, "models": self.models, "sources": self.sources}


def migrate(dbt: str | os.PathLike[str], folder: str | os.PathLike[str], *, name: str | None = None) -> Migration:
    """Make a project of a dbt project, in a folder that has no project yet."""
    reading = _Reading(Path(dbt))
    texts = reading.texts(name)
    root = Path(folder)
    taken = [path for path in texts if (root / path).exists()]
    if taken:
        raise ProjectError.folder_taken(str(root), taken)
    for path, text in texts.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    keep_schema(root)
    reading.report.files = list(texts)
    return reading.report


class _Reading:
    """One pass over a dbt project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.report = Migration()
        if not (root / _PROJECT).is_file():
            raise ProjectError.no_dbt_project(str(root))
        self.project = self._yaml(root / _PROJECT)
        given = _mapping(self.project.get("vars"))
        # Variables of the project itself may stand below its name.
        self.variables: Mapping[str, Any] = {**given, **_mapping(given.get(str(self.project.get("name"))))}
        self.model_paths = _names(self.project.get("model-paths")) or ["models"]
        self.models: dict[str, Path] = {}
        self.described: dict[str, Mapping[str, Any]] = {}
        self.described_in: dict[str, str] = {}
        self.sources: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.queries: dict[str, Path] = {}
        """The tests that are queries."""
        self.described_queries: dict[str, Mapping[str, Any]] = {}

    def texts(self, name: str | None) -> dict[str, str]:
        """The files of the project."""
        self._find()
        self._others()
        names = source_names(self.sources, self.models)
        sql, reads, lost = self._views(names)
        # A model that reads one which was not taken would be a mistake of the new project: it is left out, too.
        for model, reason in lost.items():
            del sql[model]
            self._not_taken(self._shown(self.models[model]), reason)
        tests = self._tests(sql, reads, names)
        texts = {"headwater.yaml": self._config(name or str(self.project.get("name", "project")), names, tests)}
        for model, query in sql.items():
            written = [one.written for one in tests if one.node == model]
            texts[f"views/{model}.sql"] = "\n".join([*self._header(model, written), query, ""])
        self.report.models = len(sql)
        self.report.sources = len(self.sources)
        texts[".gitignore"] = "lake/\n.headwater/\n"
        return texts

    # -- finding ---------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        for folder in self.model_paths:
            for path in self._files(folder):
                if path.suffix == ".sql":
                    if path.stem in self.models:
                        self._not_taken(self._shown(path), f"another model is called `{path.stem}`")
                    else:
                        self.models[path.stem] = path
                elif path.suffix in (".yml", ".yaml"):
                    self._properties(path)
                elif path.suffix == ".py":
                    self._not_taken(self._shown(path), "a model in Python: write it as a feature in features/*.py")
                else:
                    self._not_taken(self._shown(path), "it is neither a model nor a description of one")

    def _others(self) -> None:
        for folder, (setting, why) in _OTHER.items():
            for one in _names(self.project.get(setting)) or [folder]:
                for path in self._files(one):
                    self._not_taken(self._shown(path), why)
        for folder in _names(self.project.get("test-paths")) or ["tests"]:
            self._find_queries(folder)
        for file in ("packages.yml", "dependencies.yml"):
            if (self.root / file).is_file():
                self._not_taken(file, "packages are run by dbt")
        for key in sorted(set(self.project) - _TAKEN_OF_PROJECT):
            if not key.endswith("-paths") and key not in ("clean-targets", "target-path") and self.project[key]:
                self._not_taken(f"{_PROJECT}: {key}", "settings of dbt's runs and of whole folders are not read")
        self._described_without()

    def _find_queries(self, folder: str) -> None:
        for path in self._files(folder):
            if path.suffix in (".yml", ".yaml"):
                self._properties(path)
            elif path.suffix != ".sql" or "generic" in path.relative_to(self.root / folder).parts[:-1]:
                self._not_taken(self._shown(path), "macros are run by dbt")
            elif path.stem in self.queries:
                self._not_taken(self._shown(path), f"another test is called `{path.stem}`")
            else:
                self.queries[path.stem] = path

    def _files(self, folder: str) -> list[Path]:
        return [p for p in sorted((self.root / folder).rglob("*")) if p.is_file() and p.name != ".gitkeep"]

    def _described_without(self) -> None:
        """List what is described and not there."""
        for model in sorted(set(self.described) - set(self.models)):
            if not any(path.stem == model for folder in self.model_paths for path in self._files(folder)):
                self._not_taken(f"{self.described_in[model]}: {model}", "there is no such model")
        for query in sorted(set(self.described_queries) - set(self.queries)):
            self._not_taken(f"test {query}", "there is no such query")

    def _properties(self, path: Path) -> None:
        shown = self._shown(path)
        try:
            found = self._yaml(path)
        except HeadwaterError as error:
            self._not_taken(shown, error.message)
            return
        for model in self._entries(found, "models", shown):
            name = str(model.get("name"))
            if name in self.described:
                self._not_taken(f"{shown}: {name}", f"it is described in {self.described_in[name]}")
                continue
            self.described[name], self.described_in[name] = model, shown
        for source in self._entries(found, "sources", shown):
            self._source(source, shown)
        for key in ("tests", "data_tests"):
            for test in self._entries(found, key, shown):
                self.described_queries[str(test.get("name"))] = test
        for other in sorted(set(found) - {"version", "models", "sources", "tests", "data_tests"}):
            self._not_taken(f"{shown}: {other}", "no such thing is known here")

    def _source(self, source: Mapping[str, Any], shown: str) -> None:
        name, config = str(source.get("name")), _mapping(source.get("config"))
        for key in sorted(set(source) - _TAKEN_OF_SOURCE):
            self._not_taken(f"{shown}: source {name}: {key}", "it is said of several tables; say it of each")
        for table in self._entries(source, "tables", f"{shown}: source {name}"):
            inherited = {key: source[key] for key in ("freshness", *INHERITED) if key in source}
            found = {**inherited, **table, "config": {**config, **_mapping(table.get("config"))}}
            of = f"{shown}: source {name}.{table.get('name')}"
            if found["config"].get("enabled") is False:
                self._not_taken(of, "it is not enabled")
                continue
            self.sources[name, str(table.get("name"))] = found
            for what, why in left_out(found, of):
                self._not_taken(what, why)

    def _entries(self, found: Mapping[str, Any], key: str, shown: str) -> list[Mapping[str, Any]]:
        """The mappings of a list; what is none is listed."""
        given = found.get(key)
        if given is None:
            return []
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            self._not_taken(f"{shown}: {key}", "it is not a list of mappings")
        return [one for one in given if isinstance(one, dict)] if isinstance(given, list) else []

    # -- writing ---------------------------------------------------------------------------------------------------

    def _config(self, name: str, names: Mapping[tuple[str, str], str], tests: list[TakenTest]) -> str:
        lines = [SCHEMA_LINE.rstrip(), f"name: {quoted(name)}", "lake: ${LAKE:-lake}"]
        if names:
            lines.append("\nsources:")
        for key, table in names.items():
            settings = list(source_lines(self.sources[key]))
            lines += [f"  {table}:" if settings else f"  {table}: {{}}", *settings]
        tested = [table for table in names.values() if any(one.node == table for one in tests)]
        if tested:
            lines.append("\ntests:")
        for table in tested:
            lines += [f"  {table}:", *(f"    - {quoted(one.written)}" for one in tests if one.node == table)]
        return "\n".join(lines) + "\n"

    def _views(
        self, names: Mapping[tuple[str, str], str]
    ) -> tuple[dict[str, str], dict[str, tuple[str, ...]], dict[str, str]]:
        """The queries of the views, what each reads, and the models that are lost by that, each with the reason."""
        sql: dict[str, str] = {}
        reads: dict[str, tuple[str, ...]] = {}
        gone: dict[str, str] = {}
        known = self._known(names, self.models)
        for model, path in self.models.items():
            try:
                sql[model], reads[model] = self._view(model, path, known)
            except NotTaken as why:
                gone[model] = str(why)
                self._not_taken(self._shown(path), str(why))
        lost: dict[str, str] = {}
        while more := [(m, r) for m in reads if m not in lost for r in reads[m] if r in gone or r in lost]:
            lost |= {model: f"it reads `{read}`, which was not taken" for model, read in more}
        return sql, reads, lost

    def _known(self, names: Mapping[tuple[str, str], str], models: Mapping[str, Any]) -> Names:
        """What `ref` and `source` mean, where these models are there."""

        def ref(name: str) -> str:
            if name not in models:
                why = "which was not taken" if name in self.models else "which is no model of the project"
                raise NotTaken(f"it reads `{name}`, {why}")
            return name

        def source(schema: str, table: str) -> str:
            if (schema, table) not in names:
                raise NotTaken(f"it reads the source `{schema}.{table}`, which is not declared")
            return ".".join(plain_name(part) for part in names[schema, table].split("."))

        return Names(ref, source, self.variables)

    def _view(self, model: str, path: Path, known: Names) -> tuple[str, tuple[str, ...]]:
        sql, own, reads = known.rendered(read_text(path, self._shown(path)))
        described = self.described.get(model, {})
        config = {**_mapping(described.get("config")), **own}
        if config.get("enabled") is False:
            raise NotTaken("it is not enabled")
        if config.get("alias") not in (None, model):
            raise NotTaken(f"its alias is `{config['alias']}`: name the file so, and what reads it")
        for key in sorted(config):
            if key not in _IGNORED_CONFIG:
                self._not_taken(f"{self._shown(path)}: config {key}", "no such setting is known here")
            elif _IGNORED_CONFIG[key]:
                self._not_taken(f"{self._shown(path)}: config {key}", _IGNORED_CONFIG[key])
        self.described[model] = {**described, "config": config}
        return sql.strip(), reads

    def _header(self, model: str, tests: list[Mapping[str, Any]]) -> Iterator[str]:
        described = self.described[model]
        config = _mapping(described.get("config"))
        found = []
        text = described.get("description") or config.get("description")
        if text:
            found.append(f"-- description: {quoted(' '.join(str(text).split()))}")
        tags = [*_names(described.get("tags")), *_names(config.get("tags"))]
        if tags:
            found.append(f"-- tags: [{', '.join(map(quoted, dict.fromkeys(tags)))}]")
        if tests:
            found += ["-- tests:", *(f"--   - {quoted(one)}" for one in tests)]
        yield from [*found, ""] if found else []

    # -- data tests ------------------------------------------------------------------------------------------------

    def _tests(
        self,
        models: Mapping[str, str],
        reads: Mapping[str, tuple[str, ...]],
        names: Mapping[tuple[str, str], str],
    ) -> list[TakenTest]:
        """The data tests of all models and sources that were taken; the others are listed."""
        known = self._known(names, models)
        found: list[TakenTest] = []
        for model in models:
            described, shown = self.described[model], self._shown(self.models[model])
            for key in sorted(set(described) - _TAKEN_OF_MODEL):
                self._not_taken(f"{self.described_in[model]}: {model}: {key}", "no such setting is known here")
            of_columns = self._entries(described, "columns", f"{self.described_in.get(model, shown)}: {model}")
            for key in sorted({k for one in of_columns for k in one if k not in _TAKEN_OF_COLUMN and one[k]}):
                self._not_taken(
                    f"{self.described_in[model]}: {model}: {key} of its columns", "its query has the columns"
                )
            found += self._generic(described, model, shown, known)
        for source, table in names.items():
            found += self._generic(self.sources[source], table, f"source {'.'.join(source)}", known)

        def upstream(name: str) -> set[str]:
            return {name} | reachable(name, reads.get)

        for name, path in self.queries.items():
            shown = self._shown(path)
            try:
                described = self.described_queries.get(name, {})
                found.append(singular_test(read_text(path, shown), name, described, shown, known, upstream))
            except NotTaken as why:
                self._not_taken(shown, str(why))
        taken, waiting = without_waiting(found, lambda name: reads.get(name, ()))
        for one, why_not in waiting:
            self._not_taken(one.shown, why_not)
        for one in taken:
            for setting in one.notes:
                self._not_taken(f"{one.shown}: {setting}", "no such setting of a test is known here")
        return taken

    def _generic(self, described: Mapping[str, Any], node: str, shown: str, known: Names) -> Iterator[TakenTest]:
        """The tests of a model or source and of its columns."""
        columns = described.get("columns")
        of: list[tuple[str | None, Mapping[str, Any]]] = [(None, described)]
        of += [(str(one.get("name")), one) for one in columns or () if isinstance(one, dict)]
        for column, holder in of:
            for test in [*_any(holder.get("tests")), *_any(holder.get("data_tests"))]:
                kind = "…"
                try:
                    kind = parts(test)[0]
                    said = f"{shown}: test {kind}{'' if column is None else f' of {column}'}"
                    yield generic_test(test, node, column, said, known)
                except NotTaken as why:
                    self._not_taken(f"{shown}: test {kind}{'' if column is None else f' of {column}'}", str(why))

    # -- the rest --------------------------------------------------------------------------------------------------

    def _yaml(self, path: Path) -> dict[str, Any]:
        shown = self._shown(path)
        return read_document(read_text(path, shown), shown, {}, begins="`version:`").value

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _not_taken(self, what: str, why: str) -> None:
        self.report.not_taken.append(f"{what}: {why}")


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _any(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _names(found: Any) -> list[str]:
    return [found] if isinstance(found, str) else [str(one) for one in found] if isinstance(found, list) else []
