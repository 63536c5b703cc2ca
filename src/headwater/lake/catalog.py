"""The catalogue: names of a lake, and the Delta tables they stand for.

A table ``sales.orders`` of a lake lies in the folder ``sales/orders`` below the lake's root, so a lake is just a folder
that other tools can read. A table that lies elsewhere is attached: its name and place are kept in one small file
below ``_headwater/attached``, created by put-if-absent, so two people cannot attach two tables under one name.

A name can also stand for a derived artefact: for the table that it publishes, which says so in its log (`published`),
or for one without a table, which is recorded below ``_headwater/records/<kind>/<name>``. All of them share one set of
names.
"""

from __future__ import annotations

import json
import re

from headwater.base import faults
from headwater.base.errors import CorruptionError, HeadwaterError, InputError, NotFoundError
from headwater.base.pools import pool
from headwater.base.storage import ObjectExistsError, Storage, now_ms, open_storage
from headwater.lake import log, snapshot
from headwater.lake.published import kind_of

__all__ = ["RECORDS", "TABLE", "Catalog"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}")
_OWN = "_headwater"
_ATTACHED = f"{_OWN}/attached"
RECORDS = f"{_OWN}/records"
"""Where artefacts without tables are recorded."""
_AT_ONCE = 16
TABLE = "table"
"""The kind of what is not derived."""


class Catalog:
    """The names of one lake."""

    def __init__(self, root: Storage) -> None:
        self.root = root

    @staticmethod
    def check_name(name: str) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name.startswith("_headwater"):
            raise InputError.bad_name(str(name))

    def storage(self, name: str) -> Storage:
        """Where the table of that name lies, or would lie if it were made."""
        self.check_name(name)
        own = self.root.child(name.replace(".", "/"))
        if snapshot.is_known(own):
            # A table of the lake has this name, so nothing is attached under it. Whoever finds that it was dropped asks
            # again.
            return own
        path = f"{_ATTACHED}/{name}.json"
        try:
            location = str(json.loads(self.root.get(path))["location"])
        except NotFoundError:
            return own
        except (ValueError, KeyError, TypeError) as e:
            raise CorruptionError.state_file(path, "it does not name a location", self.root.url) from e
        return open_storage(location, self.root.options or None)

    def exists(self, name: str) -> bool:
        storage = self.storage(name)
        return is_table(storage) or (snapshot.forget(storage) and is_table(self.storage(name)))

    def names(self) -> list[str]:
        """The tables of the lake, sorted."""
        found = self._attached()
        self._discover("", 3, found)
        return sorted(set(found))

    def kind(self, name: str) -> str:
        """What a table's name stands for: "table", or the kind of artefact that publishes it.

        What cannot be read, and an artefact of another lake that is attached, is a table here.
        """
        if self.is_attached(name):
            return TABLE
        try:
            return kind_of(snapshot.latest(self.storage(name))) or TABLE
        except HeadwaterError:
            return TABLE

    def kinds(self) -> dict[str, str]:
        """The names of the lake, sorted, each with what it stands for."""
        attached = set(self._attached())
        names = self.names()
        if self.root.local_path("") is not None:
            found = {name: TABLE if name in attached else self.kind(name) for name in names}
        else:  # each takes a few requests
            found = dict(zip(names, pool("catalog", _AT_ONCE).map(self.kind, names), strict=True))
        return dict(sorted({**self.recorded(), **found}.items()))

    def artefacts(self) -> dict[str, str]:
        """The names of everything derived, sorted, each with its kind."""
        return {name: kind for name, kind in self.kinds().items() if kind != TABLE}

    def recorded(self) -> dict[str, str]:
        """The names of the artefacts that have no table, each with its kind."""
        kinds = self.root.folders(RECORDS)
        return {name: kind for kind in kinds for name in self.root.folders(f"{RECORDS}/{kind}")}

    def _attached(self) -> list[str]:
        return [e.path[len(_ATTACHED) + 1 : -len(".json")] for e in self.root.list(_ATTACHED)]

    def _discover(self, folder: str, depth: int, found: list[str]) -> None:
        for name in self.root.folders(folder):
            path = f"{folder}/{name}" if folder else name
            if not _NAME.fullmatch(name) or path == _OWN:
                continue
            inner = self.root.folders(path)
            if log.LOG in inner and is_table(self.root.child(path)):
                found.append(path.replace("/", "."))
            elif depth > 1 and inner:
                self._discover(path, depth - 1, found)

    def check_free(self, name: str) -> None:
        """Raise if a table of that name would lie inside another table, or around one: their files would mix; or if the
        name is that of an artefact without a table.
        """
        kind = self.recorded().get(name)
        if kind is not None:
            raise InputError.name_taken(name, kind, self.root.url)
        parts = name.split(".")
        for depth in range(1, len(parts)):
            outer = ".".join(parts[:depth])
            if is_table(self.root.child("/".join(parts[:depth]))):
                raise InputError.nested(name, outer, self.root.url)
        inner: list[str] = []
        self._discover("/".join(parts), 3 - len(parts), inner)
        if inner:
            raise InputError.nested(inner[0], name, self.root.url)

    def attach(self, name: str, location: str) -> Storage:
        """Give a table that lies anywhere a name in this lake."""
        self.check_name(name)
        target = open_storage(location, self.root.options or None)
        snapshot.latest(target)  # it must be a table, and readable
        if is_table(self.root.child(name.replace(".", "/"))):
            raise InputError.already_exists(name, self.root.location(name.replace(".", "/")))
        entry = json.dumps({"version": 1, "location": target.url}).encode()
        try:
            snapshot.forget(self.root.child(name.replace(".", "/")))
            self.root.put_if_absent(f"{_ATTACHED}/{name}.json", entry)
        except ObjectExistsError:
            raise InputError.already_exists(name, self.storage(name).url) from None
        return target

    def detach(self, name: str) -> None:
        """Forget an attached table; its files stay."""
        self.check_name(name)
        if not self.root.exists(f"{_ATTACHED}/{name}.json"):
            raise NotFoundError.attached(name, self._attached(), self.root.url)
        self.root.delete(f"{_ATTACHED}/{name}.json")

    def is_attached(self, name: str) -> bool:
        """Whether a name is that of a table that lies elsewhere."""
        return self.root.exists(f"{_ATTACHED}/{name}.json")

    def drop(self, name: str) -> None:
        """Delete a table of the lake with all its files, or forget an attached one."""
        self.check_name(name)
        if self.is_attached(name):
            self.detach(name)
            return
        storage = self.storage(name)
        if not is_table(storage):
            raise NotFoundError.table(name, self.names(), self.root.url)
        snapshot.forget(storage)
        # The log goes first: from then on there is no table, whatever happens to the rest.
        for prefix in (log.LOG, ""):
            for entry in list(storage.list(prefix)):
                faults.point("lake.drop.before_delete", entry.path)
                storage.delete(entry.path)
        storage.sweep("", now_ms())
        storage.remove_folder("")


def is_table(storage: Storage) -> bool:
    """Whether a Delta log lies there."""
    return snapshot.is_held(storage) or next(iter(storage.list(log.LOG)), None) is not None
