"""Options of the data source: what a read or a write may say, checked and typed.

A value comes from the option of the read or write before the session (``spark.headwater.search.<option>``, as it was
when the source was registered) before the table (its property ``headwater.search.<option>``; then the definition of its
index) before the default. A table may say which index is meant, how queries are read, and what a new index has, and
nothing else. Names are the same in either case, as everywhere in Spark. Storage options may be given as such
(``AWS_SECRET_ACCESS_KEY``), or come from the session (``spark.headwater.storage.<name>``); they hold secrets, and are
not part of any message or repr.

    path                    the table's folder, local or s3://…
    lake                    the lake's root; by default the nearest folder above that has a ``_headwater``
    index                   the index by its name; not needed where the table has one
    query, k, filter        what is searched for, how many rows, and a condition in Spark SQL
    columns                 the columns that are read; ``_score`` may be one of them
    version                 the version of the table that is read
    fields, default, lenient  as in `SearchIndex.search`
    text, keyword, numeric, binary, ip, json, substring, hot, analyzer    of a new index, as in ``lake.index``
    targetRecordsPerSplit   how many rows a split takes
    partitionColumns        of a new table
    mergeSchema             append: add the columns that the table lacks
    overwriteSchema         overwrite: take the columns of the rows
    cacheBytes, maxConcurrentLoads, queryCacheBytes, spillDir
                            the settings ``search_cache_bytes``, ``search_loads``, ``search_answers_bytes`` and
                            ``spill_dir``, in planner and tasks
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from headwater.base.errors import InputError
from headwater.base.errors.wording import candidates_hint

__all__ = ["CONF", "PROPERTY", "STORAGE_CONF", "SourceOptions"]

CONF = "spark.headwater.search."
PROPERTY = "headwater.search."
STORAGE_CONF = "spark.headwater.storage."

_LISTS = ("text", "keyword", "numeric", "binary", "ip", "json", "substring", "hot")
_NAMES = (
    "path", "lake", "index", "query", "k", "filter", "columns", "version", "fields", "default", "lenient", *_LISTS,
    "analyzer", "targetRecordsPerSplit", "partitionColumns", "mergeSchema", "overwriteSchema", "cacheBytes",
    "maxConcurrentLoads", "queryCacheBytes", "spillDir",
)  # fmt: skip
_OF_TABLE = ("index", "fields", "default", "lenient", *_LISTS, "analyzer", "targetRecordsPerSplit")
_KNOWN = {name.lower(): name for name in _NAMES}
_SETTINGS = {
    "cacheBytes": "search_cache_bytes",
    "maxConcurrentLoads": "search_loads",
    "queryCacheBytes": "search_answers_bytes",
    "spillDir": "spill_dir",
}
_STORAGE = ("aws_", "azure_", "google_")
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class SourceOptions:
    """What a read or a write says, with what the session says beneath it."""

    given: Mapping[str, str] = field(repr=False)
    storage: Mapping[str, str] = field(repr=False)
    names_fields: bool = False
    """Whether the read or write itself, and not only the session or the table, says what an index has."""

    @classmethod
    def of(cls, options: Mapping[str, str], session: Mapping[str, str], storage: Mapping[str, str]) -> SourceOptions:
        """Join the options of a read or write with those of the session; an error names one that nobody knows."""
        given: dict[str, str] = {}
        stored = dict(storage)
        for source in (session, options):
            for name, value in source.items():
                lower = name.lower()
                if lower.startswith(_STORAGE):
                    stored[lower.upper()] = value
                elif lower in _KNOWN:
                    given[_KNOWN[lower]] = value
                else:
                    why = f"the data source `headwater` has no option `{name}`"
                    raise InputError.bad_clause(why, candidates_hint(name, _NAMES, "options"))
        own = {name.lower() for name in options}
        return cls(given, stored, any(name.lower() in own for name in (*_LISTS, "analyzer")))

    def over(self, properties: Mapping[str, str], table: str) -> SourceOptions:
        """The same, with what a table's own properties say beneath it; an error names one that nobody knows."""
        known = {name.lower(): name for name in _OF_TABLE}
        found: dict[str, str] = {}
        for name, value in properties.items():
            if name.lower().startswith(PROPERTY):
                option = name[len(PROPERTY) :]
                if option.lower() not in known:
                    why = f"the table {table} has a property `{name}`, and no such option can be a table's"
                    raise InputError.bad_clause(why, candidates_hint(option, _OF_TABLE, "options of tables"))
                found[known[option.lower()]] = value
        return replace(self, given={**found, **self.given})

    def text(self, name: str) -> str | None:
        """A string, or None."""
        return self.given.get(name)

    def list(self, name: str) -> list[str] | None:
        """Names with commas between them, or None."""
        value = self.given.get(name)
        return None if value is None else [part.strip().strip("`") for part in value.split(",") if part.strip()]

    def number(self, name: str, least: int = 0) -> int | None:
        """A whole number, or None."""
        value = self.given.get(name)
        if value is None:
            return None
        if not value.strip().isdecimal() or int(value) < least:
            raise InputError.bad_argument(name, value, f"a whole number, from {least} on")
        return int(value)

    def flag(self, name: str) -> bool:
        """``true`` or ``false``, which is the default."""
        value = self.given.get(name, "false").strip().lower()
        if value not in _FLAGS:
            raise InputError.bad_argument(name, self.given[name], "true or false")
        return _FLAGS[value]

    @property
    def path(self) -> str:
        """The table's folder."""
        found = self.given.get("path")
        if not found:
            raise InputError.bad_argument("path", found, "the folder of a Delta table, as in load(path) or save(path)")
        return found

    @property
    def default(self) -> Literal["or", "and"]:
        """How words that stand side by side are joined."""
        found = self.given.get("default", "or").strip().lower()
        if found == "and":
            return "and"
        if found != "or":
            raise InputError.bad_argument("default", found, '"or" or "and"')
        return "or"

    @property
    def fields(self) -> dict[str, Any]:
        """What is said of the fields of an index."""
        found: dict[str, Any] = {name: listed for name in _LISTS if (listed := self.list(name)) is not None}
        analyzer = self.text("analyzer")
        return found if analyzer is None else {**found, "analyzer": analyzer}

    @property
    def settings(self) -> dict[str, object]:
        """The settings that are in force while planning and in tasks."""
        return {name: value for option, name in _SETTINGS.items() if (value := self.text(option)) is not None}
