"""The project: a folder of definitions and the lake that they are about, as one object.

>>> import headwater as hw, tempfile
>>> from headwater.pipeline.scaffold import init_project
>>> folder = tempfile.mkdtemp()
>>> _ = init_project(folder)
>>> project = hw.Project.load(folder)
>>> project.plan().summary()
'4 full'
>>> run = project.refresh()
>>> run.ok, project.status().ok
(True, True)
>>> project.refresh().summary().partition(" in ")[0]
'4 up to date'
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from headwater.base import settings
from headwater.base.errors import HeadwaterError, ProjectError
from headwater.base.kinds import words_of
from headwater.base.storage import open_storage
from headwater.derived import kinds
from headwater.derived.lookup import Lookup
from headwater.derived.outline import Shape
from headwater.lake import snapshot
from headwater.lake.catalog import TABLE
from headwater.lakehouse import Lake, connect
from headwater.pipeline.checks.declaration import DeclaredCheck
from headwater.pipeline.checks.evaluation import CheckResults, evaluate, left_over
from headwater.pipeline.config import Profile, ProjectConfig
from headwater.pipeline.execution import Execution, Options, attach_sources
from headwater.pipeline.files import Files, find_root, raised, read_files
from headwater.pipeline.graph import Graph, build_graph
from headwater.pipeline.ledger import SCHEMA, Ledger
from headwater.pipeline.logs import log_run
from headwater.pipeline.metrics import observe_run
from headwater.pipeline.node import Node
from headwater.pipeline.outline_cache import OutlineCache
from headwater.pipeline.planning import ProjectPlan, plan_nodes
from headwater.pipeline.project_lock import project_lock
from headwater.pipeline.project_status import ProjectStatus, status_of
from headwater.pipeline.run import NodeRun, Run
from headwater.pipeline.schema import keep_schema
from headwater.pipeline.selection import selected
from headwater.pipeline.tracing import span
from headwater.pipeline.watch import watch
from headwater.pipeline.why import Why, explain

if TYPE_CHECKING:
    from headwater.observe.graph import Graph as Picture
    from headwater.proof.verification import Verifications

__all__ = ["ENGINES", "Project"]

ENGINES = ("auto", "local", "spark")
_CACHE = ".headwater"
_MOST_WORKERS = 4


class Project:
    """A project: made by `Project.load`."""

    def __init__(self, files: Files, profile: str | None = None) -> None:
        self._files = files
        self.profile_name = profile or files.config.profile
        self._profile = files.config.profile_of(profile)
        self._lakes: dict[str, Lake] = {}
        self._graph: Graph | None = None

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str] = ".",
        *,
        profile: str | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """Read the project that a folder is in; only files are read, and the lake is not looked at yet.

        Parameters
        ----------
        path
            a folder with a ``headwater.yaml``, or one below it
        profile
            one of its profiles; that of the file by default
        environ
            stands for the variables of the process

        Raises
        ------
        ProjectError, ConfigError
            with everything that is wrong in its files
        """
        return cls(read_files(find_root(Path(path)), environ), profile)

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """What it is called."""
        return self.config.name

    @property
    def root(self) -> Path:
        """Its folder."""
        return self._files.root

    @property
    def config(self) -> ProjectConfig:
        """What its file says."""
        return self._files.config

    @property
    def profile(self) -> Profile:
        """The profile that it runs by."""
        return self._profile

    @property
    def location(self) -> str:
        """Where its lake lies."""
        found = self._profile.lake or self.config.lake
        return found if "://" in found else str(self.root / found)

    @property
    def storage_options(self) -> dict[str, str]:
        """The options of its storage."""
        given = {**self.config.storage_options, **self._profile.storage_options}
        return {name: value.get_secret_value() for name, value in given.items()}

    @property
    def lake(self) -> Lake:
        """Its lake, with the functions of the project registered; no Spark session is started for it."""
        return self._lake("local")

    def _lake(self, engine: str) -> Lake:
        if engine not in self._lakes:
            session = None
            if engine != "local":
                from headwater.spark.session import spark

                meant = self._profile.spark
                conf = None if meant is None else meant.conf
                session = spark(None if meant is None else meant.master, app_name=self.name, config=conf)
            lake = connect(self.location, self.storage_options or None, spark=session)
            for one in self._files.functions:
                try:
                    lake.function(
                        one.name, one.options["function"], **{k: v for k, v in one.options.items() if k != "function"}
                    )
                except HeadwaterError as error:
                    file = Path(one.file)
                    shown = file.relative_to(self.root) if file.is_relative_to(self.root) else file
                    error.where = f"{shown}:{one.line}" + (f"\n         {error.where}" if error.where else "")
                    raise
            for node in self._files.nodes.values():
                if not node.is_source:
                    kinds.kind(node.kind).know(node.name, node.options, lake.environment())
            self._lakes[engine] = lake
        return self._lakes[engine]

    def engine(self, asked: str | None = None) -> str:
        """Who does the work: what is asked for, or what the profile says."""
        if asked is not None and asked not in ENGINES:
            raise ProjectError.wrong_engine(asked, ENGINES, f"profile {self.profile_name}")
        return asked or ("local" if self._profile.spark is None else "auto")

    # -- the graph -------------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """Every node with what it reads and which columns it has; raises with everything that is wrong."""
        if self._graph is None:
            keep_schema(self.root)
            found = self._built_graph()
            mistakes = [*found.mistakes, *self._clashes(found)]
            if mistakes:
                raise raised(mistakes, str(self.root))
            self._graph = found
        return self._graph

    @property
    def nodes(self) -> Mapping[str, Node]:
        """What the project declares and reads, each after what it reads."""
        return self.graph.nodes

    def check(self) -> Self:
        """Raise for whatever is wrong with the project, its sources included; nothing is changed."""
        self._graph = None
        assert self.graph is not None, "it raises where it cannot be built"
        return self

    def _built_graph(self) -> Graph:
        lake, attached = self.lake, {}
        for name, node in self._files.nodes.items():
            if node.is_source and node.options.get("location") is not None:
                attached[name] = str(node.options["location"])

        def table_shape(name: str) -> Shape | None:
            if name in attached:
                storage = open_storage(attached[name], self.storage_options or None)
                base = (
                    snapshot.latest(storage) if storage.local_path("") is None or os.path.isdir(storage.url) else None
                )
                return None if base is None else Shape(name, base.schema, base.where)
            table = lake.named(name)
            current = table.current()
            return None if current is None else Shape(table.name, current.schema, current.where)

        functions = lake.user_functions
        return build_graph(
            self._files.nodes, table_shape, lake.catalog.names, functions, OutlineCache(self.root / _CACHE)
        )

    def _clashes(self, graph: Graph) -> list[HeadwaterError]:
        """Names that stand for something else in the lake than the project wants."""
        found: list[HeadwaterError] = []
        have = self._kinds
        for name, node in graph.nodes.items():
            kind = have.get(name)
            location = node.options.get("location") if node.is_source else None
            if location is not None and kind is not None:
                lies = self.lake.table(name).location.rstrip("/")
                wanted = open_storage(str(location), self.storage_options or None).url.rstrip("/")
                if lies != wanted:
                    found.append(ProjectError.attached_elsewhere(name, lies, wanted, node.where))
            if not node.is_source and kind not in (None, node.kind):
                assert kind is not None, "it was just compared"
                has = "a table" if kind == TABLE else words_of(kind).one
                found.append(ProjectError.taken_by(name, has, words_of(node.kind).one, node.where))
        return found

    @cached_property
    def _kinds(self) -> dict[str, str]:
        return self.lake.catalog.kinds()

    @property
    def unmanaged(self) -> dict[str, str]:
        """What is derived in the lake and not declared in the project, each with its kind; nothing is ever done to
        it. Views of its own former data tests are not among them: the next refresh drops those (`left_tests`).
        """
        declared = {*self.nodes, *self.graph.checks, *self.left_tests}
        return {name: kind for name, kind in self.lake.artefacts().items() if name not in declared}

    @property
    def left_tests(self) -> list[str]:
        """The views of data tests that the project has declared before and does not any more."""
        return left_over(self.lake.artefacts(), self.lake.environment(), self.name, self.graph.checks)

    def lineage(self) -> Picture:
        """The nodes as a graph that can be drawn, with the freshness of each."""
        from headwater.pipeline.drawing import drawn

        return drawn(self.name, self.graph, self.status())

    def columns(self, name: str) -> list[str]:
        """The columns of a node that come from columns of what it reads; a table's come from nowhere."""
        outline = self.graph.outlines.get(self._node(name).name)
        return [] if outline is None else list(outline.lineage)

    def column_lineage(self, name: str, column: str) -> list[tuple[str, str]]:
        """Every column that flows into a column, down to those of tables: pairs of node and column.

        >>> import headwater as hw, tempfile
        >>> from headwater.pipeline.scaffold import init_project
        >>> folder = tempfile.mkdtemp()
        >>> _ = init_project(folder)
        >>> hw.Project.load(folder).column_lineage("customer_spend", "total")
        [('orders', 'amount')]
        """
        node = self._node(name)
        outline = self.graph.outlines.get(node.name)
        if outline is None or column not in outline.lineage:
            raise ProjectError.unknown_node(f"{name}.{column}", list(outline.lineage) if outline else [], node.where)
        found: dict[tuple[str, str], None] = {}
        waiting = list(outline.lineage[column])
        while waiting:
            table, _, source = waiting.pop(0).rpartition(".")
            if (table, source) not in found:
                found[table, source] = None
                inner = self.graph.outlines.get(table)
                waiting += list(inner.lineage.get(source, ())) if inner is not None else []
        return list(found)

    # -- what can be done ------------------------------------------------------------------------------------------

    def plan(self, *selectors: str, full: bool = False, strict: bool = False, engine: str | None = None) -> ProjectPlan:
        """What `refresh` would do to each node, why, and what it is expected to take; nothing is changed."""
        names = selected(self.graph, selectors, str(self.root))
        chosen = self.engine(engine)
        with settings.override(view_engine="auto" if chosen == "spark" else chosen):
            plans = plan_nodes(self.graph, names, self.lake.environment(), full=full, strict=strict)
        return ProjectPlan(self.name, plans, self.unmanaged, tuple(self.left_tests))

    def apply(self, *selectors: str) -> dict[str, str]:
        """Give nodes the definitions that the project declares, without refreshing them; what was done, by node.

        A view that is built and gets another query is computed at once, since its rows and its query change together.
        """
        from headwater.pipeline.application import apply_definitions

        names = selected(self.check().graph, selectors, str(self.root))
        with self._locked(0.0):
            return apply_definitions(self.lake, self.name, self.graph, names)

    def refresh(
        self,
        *selectors: str,
        full: bool = False,
        strict: bool = False,
        engine: str | None = None,
        workers: int | None = None,
        wait_seconds: float = 0.0,
        stopped: threading.Event | None = None,
        on_change: Callable[[NodeRun], None] | None = None,
    ) -> Run:
        """Bring nodes forward to the newest versions of the tables, each after what it reads, side by side where they
        can be.

        The whole project is checked first; with a mistake in it nothing is changed. All nodes read the same versions
        of the tables. A node that fails keeps only those from being refreshed that read it, and so does a node or table
        that breaks a data test of severity error.

        Parameters
        ----------
        selectors
            ``spend``, ``+spend`` (with all that it reads), ``spend+`` (with all that reads it), ``tag:daily``;
            everything by default
        full
            compute them from scratch
        strict
            leave a node as it is, as a failure, rather than compute it from scratch again
        engine
            "local", "spark", or "auto", by the rows to be read, as a profile with ``spark:`` has it by default
        workers
            how many nodes at a time
        wait_seconds
            how long to wait for another refresh of the project to end
        stopped
            when it is set, no further node is begun
        on_change
            called with each node whenever its state changes, from the thread that works on it
        """
        names = selected(self.check().graph, selectors, str(self.root))
        chosen = self.engine(engine)
        defaults = self.config.defaults
        options = Options(
            full=full,
            strict=strict,
            workers=workers or self._profile.workers or min(_MOST_WORKERS, os.cpu_count() or 1),
            retries=defaults.retries,
            retry_wait_seconds=defaults.retry_wait.total_seconds(),
            on_change=on_change or (lambda _: None),
        )
        with self._locked(wait_seconds):
            lake = self._lake(chosen)
            self.__dict__.pop("_kinds", None)
            with settings.override(view_engine=chosen), span("refresh", project=self.name) as add:
                run = Execution(
                    lake,
                    self.name,
                    self.graph,
                    names,
                    options,
                    stopped=stopped or threading.Event(),
                    checks=self._checks_of(names) if selectors else self.graph.checks,
                ).go()
                add(run=run.id, ok=run.ok, nodes=len(run))
        log_run(run)
        observe_run(run)
        return run

    def _checks_of(self, names: Sequence[str]) -> dict[str, DeclaredCheck]:
        """The data tests that decide whether some nodes may be refreshed, and their own."""
        return self.graph.checks_of([*names, *(read for name in names for read in self.graph.reads(name))])

    def test(self, *selectors: str) -> CheckResults:
        """Evaluate the data tests of nodes and sources as they are now; no node is refreshed.

        >>> import headwater as hw, tempfile
        >>> from pathlib import Path
        >>> from headwater.pipeline.scaffold import init_project
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = init_project(folder)
        >>> with (folder / "headwater.yaml").open("a") as file:
        ...     _ = file.write("tests:\\n  customer_spend: [{unique: customer_id}]\\n")
        >>> project = hw.Project.load(folder)
        >>> project.refresh().ok, project.test("customer_spend").ok
        (True, True)
        """
        names = selected(self.check().graph, selectors, str(self.root), sources=True)
        attach_sources(self.lake, self.graph)
        declared = self.graph.checks_of(names)
        outlines = {view: one.outline for view, one in declared.items() if one.outline is not None}
        return evaluate(self.lake, [one.check for one in declared.values()], outlines=outlines, project=self.name)

    def watch(
        self, *selectors: str, stopped: threading.Event, interval_seconds: float = 0.2, **options: Any
    ) -> Iterator[Run]:
        """Refresh now, and then whenever a table changes, until ``stopped`` is set; gives each refresh.

        ``options`` are those of `refresh`. Only nodes that read a changed table, directly or through others, are
        refreshed; those that failed are tried again now and then.
        """
        return watch(self, selectors, stopped=stopped, interval_seconds=interval_seconds, **options)

    def _locked(self, wait_seconds: float) -> Any:
        return project_lock(self.lake.catalog.root, self.name, wait_seconds=wait_seconds)

    def status(self, *selectors: str) -> ProjectStatus:
        """How fresh nodes are, in versions and in seconds, held against the targets; tables that the project
        declares, too.
        """
        graph = self.graph
        names = selected(graph, selectors, str(self.root))
        if not selectors:
            names = [*(n for n in graph.sources if n in self._files.nodes), *names]
        lookup = Lookup(self.lake.environment())
        return ProjectStatus(self.name, status_of(graph, names, lookup), self.unmanaged)

    def why(self, name: str) -> Why:
        """Why a node is stale, and why its next refresh would be what it would be."""
        return explain(self.lake, self.name, self.graph, self._node(name))

    def history(self, name: str | None = None, *, limit: int | None = None) -> pa.Table:
        """The publishes of the project's nodes, newest first: rows of the table ``headwater.ledger``."""
        node = None if name is None else self._node(name).name
        return pa.Table.from_pylist(Ledger(self.lake, self.name).read(node, limit), SCHEMA)

    def verify(self, *selectors: str) -> Verifications:
        """Hold each node against a recomputation at its frontier: see `Lake.verify`."""
        return self.lake.verify(*selected(self.graph, selectors, str(self.root)))

    def close(self) -> None:
        """Wait until nothing is done in the background any more."""
        for lake in self._lakes.values():
            lake.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.close()

    def _node(self, name: str) -> Node:
        found = next((node for one, node in self.nodes.items() if one.lower() == name.lower()), None)
        if found is None:
            raise ProjectError.unknown_node(name, list(self.nodes), str(self.root))
        return found

    def __repr__(self) -> str:
        return f"Project({self.name!r}, {str(self.root)!r}, profile={self.profile_name!r})"

    def _repr_html_(self) -> str:
        parts: Sequence[Any] = (self.lineage(), self.status(), self.plan())
        return "".join(part._repr_html_() for part in parts)
