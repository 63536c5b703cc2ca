"""Settings: the few things that may differ between machines and runs.

The problem: knobs multiply, hide in corners and are mistyped in silence. The idea: all of them are fields of one
frozen dataclass, each with an environment variable ``HEADWATER_<NAME>``, a type that is checked, and a sentence.
A value comes from `override` (a ``with`` block) before the environment before the default, and `explain` says which.

Invariants: there are at most 25 settings; a value that does not parse is an error that names the variable; a
``HEADWATER_`` variable that nobody knows is not an error but is listed by `unknown`, for ``headwater doctor``;
a value marked secret is never printed. An override belongs to the current context: other threads do not see it.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from headwater.base.errors import InputError

__all__ = ["Explanation", "Settings", "current", "explain", "override", "unknown"]

_PREFIX = "HEADWATER_"
# Read by headwater.testing, by tests, and by the configuration of a server.
_NOT_SETTINGS = ("HEADWATER_PROFILE", "HEADWATER_FAULTS", "HEADWATER_TEST_", "HEADWATER_SERVE__")

Parse = Callable[[object], object]


class _Refused(ValueError):
    """A value does not fit; the text says what would."""


def _choice(*options: str) -> Parse:
    def parse(value: object) -> object:
        text = value.strip().lower() if isinstance(value, str) else value
        if text not in options:
            raise _Refused(f"one of {', '.join(options)}")
        return text

    return parse


def _flag(value: object) -> object:
    if isinstance(value, bool):
        return value
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, str) and value.strip().lower() in words:
        return words[value.strip().lower()]
    raise _Refused("true or false")


def _count(minimum: int) -> Parse:
    def parse(value: object) -> object:
        if isinstance(value, str) and re.fullmatch(r"\s*[0-9][0-9_]*\s*", value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise _Refused(f"a whole number of at least {minimum}")
        return value

    return parse


_UNITS = {"": 1, "b": 1} | {
    prefix + suffix: base**power
    for power, prefix in enumerate("kmgt", start=1)
    for suffix, base in (("", 1024), ("ib", 1024), ("b", 1000))
}


def _size(minimum: int) -> Parse:
    def parse(value: object) -> object:
        if isinstance(value, str):
            found = re.fullmatch(r"([0-9][0-9_]*(?:\.[0-9]+)?)\s*([a-z]*)", value.strip().lower())
            if found and found[2] in _UNITS:
                value = int(float(found[1]) * _UNITS[found[2]]) if "." in found[1] else int(found[1]) * _UNITS[found[2]]
        if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
            raise _Refused(f"a size such as 128MiB, of at least {minimum} bytes")
        return value

    return parse


def _folder(value: object) -> object:
    if value is None or value == "":
        return None
    if isinstance(value, (str, os.PathLike)):
        return Path(value).expanduser()
    raise _Refused("a folder")


def _setting(default: Any, parse: Parse, doc: str, *, secret: bool = False) -> Any:
    return dataclasses.field(default=default, metadata={"parse": parse, "doc": doc, "secret": secret})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """Every setting, with its default.

    >>> Settings().target_file_bytes == 128 * 1024 * 1024
    True
    >>> Settings.from_env({"HEADWATER_TARGET_FILE_BYTES": "64 MiB", "HEADWATER_FSYNC": "no"}).fsync
    False
    """

    progress: str = _setting(
        "auto", _choice("auto", "bars", "lines", "off"), "how progress is shown on stderr: auto, bars, lines or off"
    )
    color: str = _setting(
        "auto",
        _choice("auto", "on", "off"),
        "colour in output: auto (on a terminal, unless NO_COLOR is set), on or off",
    )
    fsync: bool = _setting(True, _flag, "flush files to the disk before they are published")
    commit_retries: int = _setting(100, _count(0), "how often a commit that lost the race is tried again")
    checkpoint_interval: int = _setting(10, _count(1), "commits between two checkpoints of a table's log")
    target_file_bytes: int = _setting(128 << 20, _size(1024), "the size of data files to aim for")
    row_group_rows: int = _setting(131_072, _count(1), "rows of a Parquet row group")
    parquet_compression: str = _setting(
        "zstd", _choice("zstd", "snappy", "lz4", "gzip", "none"), "the codec of Parquet pages"
    )
    small_vector_bytes: int = _setting(1024, _size(0), "deletion vectors up to this size are kept inside the log")
    threads: int = _setting(0, _count(0), "threads for local work; 0 takes all cores")
    memory_limit_bytes: int = _setting(0, _size(0), "memory for local work; 0 is fitted to the machine")
    spill_dir: Path | None = _setting(  # noqa: RUF009 (it is a field, like the others)
        None, _folder, "where work that outgrows memory spills; empty is the temp folder"
    )
    snapshot_cache: int = _setting(64, _count(0), "snapshots of tables kept in memory")
    state_memory_bytes: int = _setting(
        0, _size(0), "memory for the state of circuits; what is more lies in files; 0 is a quarter of the machine's"
    )
    search_cache_bytes: int = _setting(
        10 << 30, _size(0), "disk space for splits of search indexes that are unpacked on this machine"
    )
    search_loads: int = _setting(8, _count(1), "splits of search indexes that are fetched at the same time")
    search_answers_bytes: int = _setting(
        64 << 20, _size(0), "memory for answers to searches, kept until the table or the index has changed"
    )
    search_spark_rows: int = _setting(
        5_000_000, _count(0), "rows from which on Spark builds a search index, where there is a session"
    )
    use_indexes: bool = _setting(True, _flag, "let SQL on DuckDB read just the rows that a search index names")
    online_spark_rows: int = _setting(
        20_000_000, _count(0), "rows from which on Spark builds an online table, where there is a session"
    )
    view_engine: str = _setting(
        "auto", _choice("auto", "local", "spark"), "who computes refreshes of views: auto, local or spark"
    )
    view_spark_rows: int = _setting(
        5_000_000, _count(0), "rows from which on Spark refreshes a view, where there is a session"
    )
    view_spark_shards: int = _setting(
        0, _count(0), "into how many shards Spark divides the rows of a refresh; 0 is fitted to their number"
    )

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """The defaults, changed by the variables of ``environ`` (default: the process's own)."""
        source = os.environ if environ is None else environ
        given = {f.name: source[_env(f)] for f in dataclasses.fields(cls) if _env(f) in source}
        return Settings().replace(**given)

    def replace(self, **changes: object) -> Settings:
        """A copy with ``changes``, checked and parsed like the variables of the environment.

        >>> Settings().replace(progres="off")
        Traceback (most recent call last):
        ...
        headwater.base.errors.InputError: error[E1008]: no setting `progres`
          hint: did you mean `progress`? settings: progress, color, fsync, commit_retries, checkpoint_interval, \
target_file_bytes, row_group_rows, parquet_compression, … (23 in all)
        """
        fields = {f.name: f for f in dataclasses.fields(self)}
        parsed = {}
        for name, value in changes.items():
            if name not in fields:
                raise InputError.unknown_setting(name, list(fields))
            try:
                parsed[name] = fields[name].metadata["parse"](value)
            except _Refused as refusal:
                raise InputError.bad_setting(_env(fields[name]), _shown(fields[name], value), str(refusal)) from None
        return dataclasses.replace(self, **parsed)

    @property
    def worker_threads(self) -> int:
        """``threads``, with 0 replaced by the cores this process may use."""
        return self.threads or (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        )

    def wants_color(self, stream: TextIO | None = None) -> bool:
        """Whether to write colour to ``stream`` (default: stderr), by ``color``, NO_COLOR and the terminal."""
        if self.color != "auto":
            return self.color == "on"
        stream = sys.stderr if stream is None else stream
        return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()

    def __repr__(self) -> str:
        shown = (f"{f.name}={_shown(f, getattr(self, f.name))}" for f in dataclasses.fields(self))
        return f"Settings({', '.join(shown)})"


@dataclasses.dataclass(frozen=True)
class Explanation:
    """One setting: its value as text, where it came from (``default``, ``override`` or the variable)
    and its sentence.
    """

    name: str
    value: str
    source: str
    env: str
    doc: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value}  ({self.source})  {self.doc}"


# The overrides in force here, by name, as they were passed; the innermost block wins.
_overrides: ContextVar[Mapping[str, object]] = ContextVar("headwater_settings", default={})  # noqa: B039 (never mutated)
_cached: tuple[tuple[object, ...], Settings] | None = None


def _environment() -> tuple[object, ...]:
    """What the environment says of the settings, as it stands; asked often, so it goes around `os.environ`,
    which encodes each name.
    """
    data = getattr(os.environ, "_data", None)
    if data is None or os.name == "nt":
        return tuple(os.environ.get(name) for name in _ENV_NAMES)
    return tuple(map(data.get, _ENV_BYTES))


def current() -> Settings:
    """The settings in force here.

    >>> with override(progress="off"):
    ...     current().progress
    'off'
    """
    global _cached
    raw, known = _environment(), _cached
    if known is None or known[0] != raw:
        _cached = known = (raw, Settings.from_env())
    changes = _overrides.get()
    return _changed(known[1], changes) if changes else known[1]


def _changed(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """Settings with overrides. They are asked for again and again within a block,
    and blocks are entered again and again.
    """
    try:
        return _changed_lately(settings, **changes)
    except TypeError:  # a value that cannot be looked up is none that a setting takes
        return settings.replace(**changes)


@lru_cache(maxsize=32, typed=True)
def _changed_lately(settings: Settings, /, **changes: object) -> Settings:
    return settings.replace(**changes)


@contextmanager
def override(**changes: object) -> Iterator[Settings]:
    """Change settings for the block, in this thread and context; blocks nest."""
    merged = {**_overrides.get(), **changes}
    _changed(Settings(), merged)  # refuses bad names and values before the block begins
    token = _overrides.set(merged)
    try:
        yield current()
    finally:
        _overrides.reset(token)


def explain() -> list[Explanation]:
    """Each setting, its value, and where the value came from.

    >>> with override(threads=2):
    ...     [str(e) for e in explain() if e.name == "threads"]
    ['threads = 2  (override)  threads for local work; 0 takes all cores']
    """
    now, overridden = current(), _overrides.get()
    lines = []
    for field in dataclasses.fields(Settings):
        env = _env(field)
        source = "override" if field.name in overridden else env if env in os.environ else "default"
        lines.append(
            Explanation(field.name, _shown(field, getattr(now, field.name)), source, env, field.metadata["doc"])
        )
    return lines


def unknown(environ: Mapping[str, str] | None = None) -> list[InputError]:
    """Variables that look like settings and are none, each as the error to show; their values are not looked at.

    >>> print(unknown({"HEADWATER_PROGRES": "off"})[0].message)
    no setting `HEADWATER_PROGRES`
    """
    names = os.environ if environ is None else environ
    return [
        InputError.unknown_setting(name, _ENV_NAMES)
        for name in sorted(names)
        if name.startswith(_PREFIX) and name not in _ENV_NAMES and not name.startswith(_NOT_SETTINGS)
    ]


def _env(field: dataclasses.Field[Any]) -> str:
    return _PREFIX + field.name.upper()


def _shown(field: dataclasses.Field[Any], value: object) -> str:
    return "***" if field.metadata["secret"] and value else str(value)


_ENV_NAMES = [_env(field) for field in dataclasses.fields(Settings)]
_ENV_BYTES = [os.fsencode(name) for name in _ENV_NAMES]
