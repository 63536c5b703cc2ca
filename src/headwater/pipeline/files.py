"""Reading a project's files: ``headwater.yaml``, ``views/**/*.sql``, ``functions/*.py`` and ``features/*.py``.

Only files are read here; the lake is not looked at. All mistakes of all files are found before any of them is reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from headwater.base.errors import HeadwaterError, InputError, ProjectError
from headwater.base.spans import Months, length_of
from headwater.lake.catalog import Catalog
from headwater.pipeline.code_file import read_code
from headwater.pipeline.config import PROJECT_FILE, ProjectConfig
from headwater.pipeline.declarations import Declared
from headwater.pipeline.node import SOURCE, Node
from headwater.pipeline.view_file import Mistakes, ViewFile, read_text, read_view, validated

__all__ = ["Files", "find_root", "raised", "read_files"]

_SECTIONS = (("indexes", "index", "on"), ("online", "online", "source"), ("exports", "export", "source"))
"""Sections of the file: the kind of what each declares, and the option that names the table."""
_OWN = ("description", "freshness", "tags")


@dataclass(frozen=True)
class Files:
    """What the files of a project say."""

    root: Path
    config: ProjectConfig
    nodes: Mapping[str, Node]
    functions: tuple[Declared, ...] = ()
    mistakes: tuple[HeadwaterError, ...] = field(default=())


def find_root(start: Path) -> Path:
    """The folder of the project that a folder or file is in."""
    at = start.resolve()
    for folder in (at, *at.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    raise ProjectError.not_found(str(at))


def read_files(root: Path, environ: Mapping[str, str] | None = None) -> Files:
    """Read the project in a folder; raises with everything that is wrong."""
    given = os.environ if environ is None else environ
    reading = _Reading(root, given)
    reading.run()
    if reading.mistakes:
        raise raised(reading.mistakes, str(root))
    assert reading.config is not None, "no mistake was found in it"
    return Files(root, reading.config, reading.nodes, tuple(reading.functions))


def raised(mistakes: Iterable[HeadwaterError], where: str) -> HeadwaterError:
    """The error that stands for some."""
    found = list(mistakes)
    if len(found) == 1:
        return found[0]
    lines = [f"{_one_line(one.where)}: {one.message}{f' ({one.hint})' if one.hint else ''}" for one in found]
    return ProjectError.mistakes(lines, sorted({one.code for one in found}), where)


def _one_line(where: str | None) -> str:
    return (where or "").split("\n", 1)[0]


class _Reading:
    """One pass over the files, which goes on after a mistake."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self.root = root
        self.environ = environ
        self.config: ProjectConfig | None = None
        self.nodes: dict[str, Node] = {}
        self.functions: list[Declared] = []
        self.mistakes: list[HeadwaterError] = []
        self._names: dict[str, str] = {}
        self._lines: Mapping[tuple[str, ...], int] = {}

    def run(self) -> None:
        self._read_config()
        for path in self._paths("views", "*.sql"):
            self._try(lambda path=path: self._add_view(path))
        for folder in ("functions", "features"):
            for path in self._paths(folder, "*.py"):
                self._try(lambda path=path: self._add_code(path))
        self._attach_tests()

    def _paths(self, folder: str, pattern: str) -> list[Path]:
        return sorted(
            p for p in (self.root / folder).rglob(pattern) if p.is_file() and not p.name.startswith((".", "_"))
        )

    def _try(self, step: Any) -> None:
        try:
            step()
        except Mistakes as several:
            self.mistakes += several.errors
        except HeadwaterError as error:
            self.mistakes.append(error)

    def _shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    # -- headwater.yaml --------------------------------------------------------------------------------------------

    def _read_config(self) -> None:
        def step() -> None:
            text = read_text(self.root / PROJECT_FILE, PROJECT_FILE)
            begins = "`name:` and `lake:`"
            config, lines = validated(
                ProjectConfig, text, PROJECT_FILE, self.environ, begins=begins, folder=str(self.root)
            )
            self.config, self._lines = config, lines
            for name, source in config.sources.items():
                where = f"{PROJECT_FILE}:{lines.get(('sources', name), 1)}"
                self._add(
                    Node(
                        name=name,
                        kind=SOURCE,
                        where=where,
                        options=_given(source),
                        description=source.description,
                        freshness=source.freshness,
                    )
                )
            self._add_sections(config, PROJECT_FILE, lines, None)

        self._try(step)

    def _add_sections(self, of: Any, shown: str, lines: Mapping[tuple[str, ...], int], view: str | None) -> None:
        """The indexes, online tables and exports of the project's file, or of a view's."""
        for section, kind, option in _SECTIONS:
            for name, one in getattr(of, section).items():
                where = f"{shown}:{lines.get((section, name), 1)}"
                self._try(lambda n=name, o=one, w=where, k=kind, t=option: self._add_kept(n, o, w, k, t, view))

    def _add_kept(self, name: str, one: Any, where: str, kind: str, option: str, view: str | None) -> None:
        options = _given(one)
        if view is not None:
            if options.get(option, view) != view:
                what = f"`{option}: {options[option]}` in the file of `{view}`"
                raise ProjectError.contradiction(what, where, f"leave `{option}` out, or declare it in {PROJECT_FILE}")
            options[option] = view
        elif option not in options:
            raise ProjectError.missing_key(name, option, where)
        self._add(
            Node(
                name=name,
                kind=kind,
                where=where,
                options=options,
                description=one.description,
                freshness=self._freshness(one.freshness),
                tags=tuple(one.tags),
            )
        )

    def _freshness(self, own: timedelta | None) -> timedelta | None:
        return own if own is not None or self.config is None else self.config.defaults.freshness

    # -- views and code --------------------------------------------------------------------------------------------

    def _add_view(self, path: Path) -> None:
        shown = self._shown(path)
        found: ViewFile = read_view(path, shown, self.environ)
        header = found.header
        if header.partition_by is not None:
            why = "a refresh puts changed rows into new files, wherever they belong"
            raise ProjectError.unsupported_setting(
                "partition_by", why, f"{shown}:{found.lines.get(('partition_by',), 1)}"
            )
        defaults = None if self.config is None else self.config.defaults
        options: dict[str, Any] = {
            "sql": found.sql,
            "policy": header.policy or (defaults.policy if defaults else "auto"),
        }
        if header.shards != 1:
            options["shards"] = header.shards
        if header.description:
            options["comment"] = header.description
        self._add(
            Node(
                name=_checked(path.name.removesuffix(".sql"), shown),
                kind="view",
                where=f"{shown}:{found.first_line}",
                options=options,
                path=path,
                first_line=found.first_line,
                description=header.description,
                freshness=self._freshness(header.freshness),
                tags=tuple(header.tags),
                tests=tuple(header.tests),
                tests_at=_places(header.tests, ("tests",), found.lines, shown),
            )
        )
        self._add_sections(header, shown, found.lines, path.name.removesuffix(".sql"))

    def _add_code(self, path: Path) -> None:
        shown = self._shown(path)
        for one in read_code(path, shown, self.root):
            where = f"{shown}:{one.line}"
            if one.is_function:
                self.functions.append(one)
                continue
            options = dict(one.options)
            own = {key: options.pop(key, None) for key in ("freshness", "tags", "tests")}
            self._add(
                Node(
                    name=_checked(one.name, where),
                    kind=one.kind,
                    where=where,
                    options=options,
                    path=path,
                    first_line=one.line,
                    description=one.description,
                    freshness=self._freshness(_duration(own["freshness"], where)),
                    tags=tuple(own["tags"] or ()),
                    tests=tuple(own["tests"] or ()),
                    tests_at=(where,) * len(own["tests"] or ()),
                )
            )

    def _attach_tests(self) -> None:
        from dataclasses import replace

        for name, tests in (self.config.tests if self.config is not None else {}).items():
            node = self.nodes.get(name)
            if node is None:
                known = list(self.nodes)
                where = f"{PROJECT_FILE}:{self._lines.get(('tests', name), 1)}"
                self.mistakes.append(ProjectError.unknown_node(name, known, where))
            else:
                places = _places(tests, ("tests", name), self._lines, PROJECT_FILE)
                self.nodes[name] = replace(node, tests=(*node.tests, *tests), tests_at=(*node.tests_at, *places))

    def _add(self, node: Node) -> None:
        """Take a node in; names in another case are the same name."""
        first = self._names.get(node.name.lower())
        if first is not None:
            raise ProjectError.duplicate_name(node.name, node.where, first)
        self._names[node.name.lower()] = node.where
        self.nodes[node.name] = node


def _places(
    tests: Sequence[Any], path: tuple[str, ...], lines: Mapping[tuple[str, ...], int], shown: str
) -> tuple[str, ...]:
    """Where each of some data tests stands; one without a key of its own is shown at the list's."""
    above, found = lines.get(path, 1), []
    for number, test in enumerate(tests):
        key = str(next(iter(test), "")) if isinstance(test, Mapping) else ""
        found.append(f"{shown}:{lines.get((*path, str(number), key), above)}")
    return tuple(found)


def _given(model: BaseModel) -> dict[str, Any]:
    """The options that a section gives, by the names that they have in the file."""
    found = {}
    for name, info in type(model).model_fields.items():
        if name in model.model_fields_set and name not in _OWN and getattr(model, name) is not None:
            found[info.alias or name] = getattr(model, name)
    return found


def _checked(name: str, where: str) -> str:
    try:
        Catalog.check_name(name)
    except InputError as error:
        error.where = where
        raise
    return name


def _duration(given: Any, where: str) -> timedelta | None:
    if given is None or isinstance(given, timedelta):
        return given
    found = length_of(str(given), "freshness")
    if isinstance(found, Months):
        raise ProjectError.bad_value(f"`freshness` is {given!r}", "a length of time without months", where)
    return found
