"""The catalogue: names of a lake, and the Delta tables they stand for.

A table ``sales.orders`` of a lake lies in the folder ``sales/orders`` below the lake's root, so a lake is just a folder
that other tools can read. A table that lies elsewhere is attached: its name and place are kept in one small file
below ``_headwater/attached``, created by put-if-absent, so two people cannot attach two tables under one name.
"""

from __future__ import annotations

import json
import re

from headwater.base.errors import InputError, NotFoundError
from headwater.base.storage import ObjectExistsError, Storage, open_storage
from headwater.lake import log, snapshot

__all__ = ["Catalog"]

_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}$")
_ATTACHED = "_headwater/attached"


class Catalog:
    """The names of one lake."""

    def __init__(self, root: Storage) -> None:
        self.root = root

    @staticmethod
    def check_name(name: str) -> None:
        if not isinstance(name, str) or not _NAME.match(name) or name.startswith("_headwater"):
            raise InputError.bad_name(str(name))

    def storage(self, name: str) -> Storage:
        """Where the table of that name lies, or would lie if it were made."""
        self.check_name(name)
        try:
            entry = json.loads(self.root.get(f"{_ATTACHED}/{name}.json"))
        except NotFoundError:
            return self.root.child(name.replace(".", "/"))
        return open_storage(entry["location"], self.root.options or None)

    def exists(self, name: str) -> bool:
        return is_table(self.storage(name))

    def names(self) -> list[str]:
        """The tables of the lake, sorted."""
        found = [e.path[len(_ATTACHED) + 1 : -len(".json")] for e in self.root.list(_ATTACHED)]
        self._discover("", 3, found)
        return sorted(set(found))

    def _discover(self, folder: str, depth: int, found: list[str]) -> None:
        for name in self.root.folders(folder):
            path = f"{folder}/{name}" if folder else name
            if not _NAME.match(name):
                continue
            if log.LOG in (inner := self.root.folders(path)):
                found.append(path.replace("/", "."))
            elif depth > 1 and inner:
                self._discover(path, depth - 1, found)

    def attach(self, name: str, location: str) -> Storage:
        """Give a table that lies anywhere a name in this lake."""
        target = open_storage(location, self.root.options or None)
        self.check_name(name)
        snapshot.latest(target)  # it must be a table, and readable
        if is_table(self.root.child(name.replace(".", "/"))):
            raise InputError.already_exists(name, self.root.location(name.replace(".", "/")))
        entry = json.dumps({"version": 1, "location": target.url}).encode()
        try:
            self.root.put_if_absent(f"{_ATTACHED}/{name}.json", entry)
        except ObjectExistsError:
            raise InputError.already_exists(name, self.storage(name).url) from None
        return target

    def detach(self, name: str) -> None:
        """Forget an attached table; its files stay."""
        if not self.root.exists(f"{_ATTACHED}/{name}.json"):
            raise NotFoundError.table(name, self.names(), self.root.url)
        self.root.delete(f"{_ATTACHED}/{name}.json")

    def drop(self, name: str) -> None:
        """Delete a table of the lake with all its files, or forget an attached one."""
        if self.root.exists(f"{_ATTACHED}/{name}.json"):
            self.detach(name)
            return
        storage = self.storage(name)
        if not is_table(storage):
            raise NotFoundError.table(name, self.names(), self.root.url)
        snapshot.forget(storage)
        # The log goes first: from then on there is no table, whatever happens to the rest.
        for prefix in (log.LOG, ""):
            for entry in list(storage.list(prefix)):
                storage.delete(entry.path)
        storage.remove_folder("")


def is_table(storage: Storage) -> bool:
    """Whether a Delta log lies there."""
    return next(iter(storage.list(log.LOG)), None) is not None
