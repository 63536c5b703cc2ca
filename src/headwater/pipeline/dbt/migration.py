"""Migration: a Headwater project from the models, sources, tests and descriptions of a dbt project.

Every file of the dbt project is either taken or listed with the reason why it was not; what is taken in part says what
is missing. Nothing of the dbt project is changed, and nothing is written before all of it has been read.

What stays the same: a model is a view of its file's name, its description and tags come with it, ``ephemeral`` models
are views too, data tests are kept as they are written. What a source is called in the lake is its table's name, or
``source.table`` where two sources have a table of one name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from headwater.base.config.document import read_document
from headwater.base.errors import HeadwaterError, ProjectError
from headwater.base.spark_text import plain_name
from headwater.pipeline.dbt.jinja import NotTaken, rendered
from headwater.pipeline.view_file import read_text

__all__ = ["Migration", "migrate"]

_PROJECT = "dbt_project.yml"
_OTHER = {
    "macros": "macros are run by dbt",
    "snapshots": "a Delta table keeps its versions: read VERSION AS OF",
    "seeds": 'load it once: headwater sql -c "CREATE TABLE … AS SELECT …"',
    "analyses": "run it with headwater sql -f",
    "tests": "a test in SQL: declare it under `tests:` of its view",
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
_UNITS = {"minute": 60, "hour": 3600, "day": 86_400}


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
        self.variables: Mapping[str, Any] = _mapping(self.project.get("vars"))
        self.model_paths = _names(self.project.get("model-paths")) or ["models"]
        self.models: dict[str, Path] = {}
        self.described: dict[str, Mapping[str, Any]] = {}
        self.sources: dict[tuple[str, str], Mapping[str, Any]] = {}

    def texts(self, name: str | None) -> dict[str, str]:
        """The files of the project."""
        self._find()
        self._others()
        shared = [table for _, table in self.sources]
        names = {key: key[1] if shared.count(key[1]) == 1 else f"{key[0]}.{key[1]}" for key in self.sources}
        views, lost = self._views(names)
        texts = {"headwater.yaml": self._config(name or str(self.project.get("name", "project")), names)}
        texts |= views
        # A model that reads one which was not taken would be a mistake of the new project: it is left out, too.
        while missing := {m: r for m, r in lost.items() if f"views/{m}.sql" in texts}:
            for model, reason in missing.items():
                del texts[f"views/{model}.sql"]
                self._not_taken(self._shown(self.models[model]), reason)
        self.report.models = len(texts) - 1
        self.report.sources = len(self.sources)
        texts[".gitignore"] = "lake/\n.headwater/\n"
        return texts

    # -- finding ---------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        for folder in self.model_paths:
            for path in sorted((self.root / folder).rglob("*")):
                if path.suffix == ".sql":
                    if path.stem in self.models:
                        self._not_taken(self._shown(path), f"another model is called `{path.stem}`")
                    else:
                        self.models[path.stem] = path
                elif path.suffix in (".yml", ".yaml"):
                    self._properties(path)
                elif path.suffix == ".py":
                    self._not_taken(self._shown(path), "a model in Python: write it as a feature in features/*.py")

    def _others(self) -> None:
        for folder, why in _OTHER.items():
            paths = _names(self.project.get(f"{folder.removesuffix('s')}-paths")) or [folder]
            for path in (p for one in paths for p in sorted((self.root / one).rglob("*")) if p.is_file()):
                if path.name != ".gitkeep":
                    self._not_taken(self._shown(path), why)
        for file in ("packages.yml", "dependencies.yml"):
            if (self.root / file).is_file():
                self._not_taken(file, "packages are run by dbt")

    def _properties(self, path: Path) -> None:
        try:
            found = self._yaml(path)
        except HeadwaterError as error:
            self._not_taken(self._shown(path), error.message)
            return
        for model in _list(found.get("models")):
            self.described[str(model.get("name"))] = model
        for source in _list(found.get("sources")):
            for table in _list(source.get("tables")):
                self.sources[str(source.get("name")), str(table.get("name"))] = {**_inherited(source), **table}
        for other in sorted(set(found) - {"version", "models", "sources"}):
            self._not_taken(f"{self._shown(path)}: {other}", "no such thing is known here")

    # -- writing ---------------------------------------------------------------------------------------------------

    def _config(self, name: str, names: Mapping[tuple[str, str], str]) -> str:
        lines = [f"name: {_quoted(name)}", "lake: ${LAKE:-lake}"]
        if names:
            lines.append("\nsources:")
        for key, table in names.items():
            found = self.sources[key]
            lines.append(f"  {table}:")
            own = len(lines)
            if found.get("description"):
                lines.append(f"    description: {_quoted(' '.join(str(found['description']).split()))}")
            age = self._age(found, f"source {key[0]}.{key[1]}")
            if age is not None:
                lines.append(f"    freshness: {int(age.total_seconds())} s")
            types = {str(c["name"]): str(c["data_type"]) for c in _list(found.get("columns")) if c.get("data_type")}
            if types:
                lines.append("    columns:")
                lines += [f"      {_quoted(column)}: {_quoted(kind)}" for column, kind in types.items()]
            if len(lines) == own:
                lines[-1] += " {}"
        return "\n".join(lines) + "\n"

    def _age(self, found: Mapping[str, Any], where: str) -> timedelta | None:
        """How old a source may be: the first limit of its ``freshness``."""
        freshness = _mapping(found.get("freshness"))
        limit = _mapping(freshness.get("error_after") or freshness.get("warn_after"))
        if not limit:
            return None
        unit, count = _UNITS.get(str(limit.get("period"))), limit.get("count")
        if unit is None or not isinstance(count, int):
            self._not_taken(where, f"its freshness {limit!r}")
            return None
        return timedelta(seconds=unit * count)

    def _views(self, names: Mapping[tuple[str, str], str]) -> tuple[dict[str, str], dict[str, str]]:
        """The files of the views, and the models that are lost by what they read, each with the reason."""
        texts: dict[str, str] = {}
        reads: dict[str, tuple[str, ...]] = {}
        gone: dict[str, str] = {}
        for model, path in self.models.items():
            try:
                text, reads[model] = self._view(model, path, names)
                texts[f"views/{model}.sql"] = text
            except NotTaken as why:
                gone[model] = str(why)
                self._not_taken(self._shown(path), str(why))
        lost: dict[str, str] = {}
        while more := [(m, r) for m in reads if m not in lost for r in reads[m] if r in gone or r in lost]:
            lost |= {model: f"it reads `{read}`, which was not taken" for model, read in more}
        return texts, lost

    def _view(self, model: str, path: Path, names: Mapping[tuple[str, str], str]) -> tuple[str, tuple[str, ...]]:
        def ref(name: str) -> str:
            if name not in self.models:
                raise NotTaken(f"it reads `{name}`, which is no model of the project")
            return name

        def source(schema: str, table: str) -> str:
            if (schema, table) not in names:
                raise NotTaken(f"it reads the source `{schema}.{table}`, which is not declared")
            return ".".join(plain_name(part) for part in names[schema, table].split("."))

        made = rendered(read_text(path, self._shown(path)), ref, source, self.variables)
        described = self.described.get(model, {})
        config = {**_mapping(described.get("config")), **made.config}
        if config.get("enabled") is False:
            raise NotTaken("it is not enabled")
        if config.get("alias") not in (None, model):
            raise NotTaken(f"its alias is `{config['alias']}`: name the file so, and what reads it")
        for key in sorted(config):
            if key not in _IGNORED_CONFIG:
                self._not_taken(f"{self._shown(path)}: config {key}", "no such setting is known here")
            elif _IGNORED_CONFIG[key]:
                self._not_taken(f"{self._shown(path)}: config {key}", _IGNORED_CONFIG[key])
        return "\n".join([*self._header(path, described, config), made.sql.strip(), ""]), made.reads

    def _header(self, path: Path, described: Mapping[str, Any], config: Mapping[str, Any]) -> Iterator[str]:
        found = []
        text = described.get("description") or config.get("description")
        if text:
            found.append(f"-- description: {_quoted(' '.join(str(text).split()))}")
        tags = [*_names(described.get("tags")), *_names(config.get("tags"))]
        if tags:
            found.append(f"-- tags: [{', '.join(map(_quoted, dict.fromkeys(tags)))}]")
        tests = list(self._tests(path, described))
        if tests:
            found += ["-- tests:", *(f"--   - {one}" for one in tests)]
        yield from [*found, ""] if found else []

    def _tests(self, path: Path, described: Mapping[str, Any]) -> Iterator[str]:
        """The data tests of a model that are known here, as they are written in a view's file."""
        import json

        for column in _list(described.get("columns")):
            for test in [*_any(column.get("tests")), *_any(column.get("data_tests"))]:
                kind, options = (test, {}) if isinstance(test, str) else next(iter(_mapping(test).items()), ("", {}))
                options = {**_mapping(_mapping(options).get("arguments")), **_mapping(options)}
                name = str(column.get("name"))
                if kind in ("not_null", "unique"):
                    yield json.dumps({kind: name})
                elif kind == "accepted_values" and isinstance(options.get("values"), list):
                    yield json.dumps({kind: {"column": name, "values": options["values"]}})
                else:
                    self._not_taken(f"{self._shown(path)}: test {kind} of {name}", "write it as a query")
        for test in [*_any(described.get("tests")), *_any(described.get("data_tests"))]:
            kind = test if isinstance(test, str) else next(iter(_mapping(test)), "")
            self._not_taken(f"{self._shown(path)}: test {kind}", "write it as a query")

    # -- the rest --------------------------------------------------------------------------------------------------

    def _yaml(self, path: Path) -> dict[str, Any]:
        shown = self._shown(path)
        return read_document(read_text(path, shown), shown, {}, begins="`version:`").value

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def _not_taken(self, what: str, why: str) -> None:
        self.report.not_taken.append(f"{what}: {why}")


def _inherited(source: Mapping[str, Any]) -> dict[str, Any]:
    return {key: source[key] for key in ("freshness",) if key in source}


def _mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _list(found: Any) -> list[Mapping[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _any(found: Any) -> list[Any]:
    return found if isinstance(found, list) else []


def _names(found: Any) -> list[str]:
    return [found] if isinstance(found, str) else [str(one) for one in found] if isinstance(found, list) else []


def _quoted(text: str) -> str:
    """A scalar of YAML that is that text, whatever it holds."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("${", "$${")
