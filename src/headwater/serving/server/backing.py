"""Where the tables of a server are: online tables of lakes, and tables in the server's own data folder.

All of them are stores with a log of records (`headwater.serving.store`), so serving one is following its log. Which
ones there are is asked again and again: the API makes and drops tables, and so do people with the lake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headwater.base.errors import RequestError
from headwater.lake.catalog import RECORDS
from headwater.serving.server.served import NewTable, TableFacts, TableWrite
from headwater.serving.store import KIND_NAME, Following, OnlineStore

if TYPE_CHECKING:
    import pyarrow as pa

    from headwater.base.storage import Storage

__all__ = ["LakeTables", "online_names"]


class LakeTables:
    """All online tables of a lake, whatever they are; the API does not change them.

    Parameters
    ----------
    root : Storage
        of the lake
    """

    def __init__(self, root: Storage) -> None:
        self._root = root
        self.is_remote = root.local_path("") is None
        self._facts = TableFacts(remote=self.is_remote)

    def tables(self) -> Mapping[str, TableFacts]:
        return dict.fromkeys(online_names(self._root), self._facts)

    def follow(self, name: str) -> Following:
        return OnlineStore(self._root, name).follow()

    def definition(self, name: str) -> NewTable:
        raise RequestError.read_only(name, "they come from its source")

    def create(self, name: str, definition: NewTable) -> None:
        raise RequestError.not_ours(name, "this server serves a lake", "create it in the lake: CREATE ONLINE TABLE")

    def drop(self, name: str) -> None:
        raise RequestError.not_ours(name, "it belongs to the lake", "drop it in the lake: DROP ONLINE TABLE")

    def write(self, name: str, rows: pa.Table) -> TableWrite:
        raise RequestError.read_only(name, "they come from its source")

    def delete(self, name: str, keys: pa.Table) -> TableWrite:
        raise RequestError.read_only(name, "they come from its source")

    def compact(self, name: str) -> None:
        raise RequestError.read_only(name, "they come from its source")

    def close(self) -> None:
        pass


def online_names(root: Storage) -> list[str]:
    """The online tables below a root."""
    return sorted(root.folders(f"{RECORDS}/{KIND_NAME}"))
