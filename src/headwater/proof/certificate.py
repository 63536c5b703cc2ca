"""Certificates: what was erased, what had to go with it, and what a search of everything found afterwards.

A certificate must not name what was forgotten, since it lies in the lake. It has a salted hash of the key instead, so
that whoever knows the key can tell that it is about it (`Certificate.is_about`). It is JSON, version 1, in
``_headwater/forgotten/<time>-<id>.json``, with the same as text beside it::

    {"format": "headwater certificate", "version": 1, "id": …, "at": "<ISO 8601>", "table": "<name>",
     "key": {"columns": […], "salt": "<hex>", "hash": "<hex of BLAKE2b>"},
     "roots": […], "artefacts": […],          what was erased from, and what was brought forward and written anew
     "search": {"files": n, "bytes": n, "decoded": {…}, "places": […], "hits": […]},
     "left_out": […],                          what lies elsewhere and was not touched
     "digest": "<hex of SHA-256 of all of this without the digest, as sorted JSON>"}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from headwater.proof.key import Key

__all__ = ["Certificate", "ErasedTable", "PurgedArtefact", "digest_of", "hash_of_key"]


@dataclass(frozen=True, kw_only=True)
class ErasedTable:
    """What was done to a table: a source, or the rows of something derived.

    Parameters
    ----------
    name : str
    rows : int
        live rows that were deleted
    version : int
        the newest version afterwards
    lost : int
        time travel is lost up to this version; -1: none of it
    entries, files, bytes : int
        entries of the log and data files that were deleted
    """

    name: str
    rows: int
    version: int
    lost: int
    entries: int
    files: int
    bytes: int


@dataclass(frozen=True, kw_only=True)
class PurgedArtefact:
    """What was done to something derived: brought forward, and written anew without what was erased."""

    name: str
    kind: str
    before: Mapping[str, int]
    after: Mapping[str, int]
    told_by: tuple[str, ...]
    """The columns by which its rows are told; none where its whole past was deleted."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The record of an erasure.

    Parameters
    ----------
    id, at : str
    table : str
    columns : tuple of str
        the columns of the key
    salt, hash : str
        of the key's values
    roots : tuple of ErasedTable
        the tables that rows were deleted from
    tables : tuple of ErasedTable
        the tables of artefacts, and what went of their past
    artefacts : tuple of PurgedArtefact
    files, bytes : int
        how much was searched
    decoded : mapping of str to int
        how many files of each kind were decoded for it
    places : tuple of str
        where
    hits : tuple of tuple of str
        what was found: there is none if it is complete
    left_out : tuple of str
        what was not touched
    """

    id: str
    at: str
    table: str
    columns: tuple[str, ...]
    salt: str
    hash: str
    roots: tuple[ErasedTable, ...]
    tables: tuple[ErasedTable, ...]
    artefacts: tuple[PurgedArtefact, ...]
    files: int
    bytes: int
    decoded: Mapping[str, int] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    hits: tuple[tuple[str, str], ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether nothing was found."""
        return not self.hits

    def is_about(self, key: Key) -> bool:
        """Whether it certifies that the rows with a key were erased."""
        return hash_of_key(key, self.salt) == self.hash

    def as_dict(self) -> dict[str, Any]:
        """As a JSON object, with its digest."""
        found: dict[str, Any] = {
            "format": "headwater certificate",
            "version": 1,
            "id": self.id,
            "at": self.at,
            "table": self.table,
            "complete": self.complete,
            "key": {"columns": list(self.columns), "salt": self.salt, "hash": self.hash},
            "roots": [asdict(one) for one in self.roots],
            "tables": [asdict(one) for one in self.tables],
            "artefacts": [{**asdict(one), "told_by": list(one.told_by)} for one in self.artefacts],
            "search": {
                "files": self.files,
                "bytes": self.bytes,
                "decoded": dict(self.decoded),
                "places": list(self.places),
                "hits": [list(hit) for hit in self.hits],
            },
            "left_out": list(self.left_out),
        }
        return {**found, "digest": digest_of(found)}

    def __str__(self) -> str:
        rows = sum(one.rows for one in self.roots)
        head = f"certificate {self.id}, {self.at}: rows of `{self.table}` by {', '.join(self.columns)}"
        lines = [head, f"  {rows:,} live row{'' if rows == 1 else 's'} deleted"]
        for one in (*self.roots, *self.tables):
            lost = f"; versions up to {one.lost} can no longer be read" if one.lost >= 0 else ""
            lines.append(
                f"  {one.name}@{one.version}: {one.files:,} files and {one.entries:,} log entries deleted{lost}"
            )
        for made in self.artefacts:
            after = " ".join(f"{name}@{version}" for name, version in made.after.items())
            lines.append(f"  {made.name} ({made.kind}): at {after}, written anew")
        found = "nothing found" if self.complete else f"{len(self.hits):,} hits"
        lines.append(f"  searched {self.files:,} files, {self.bytes:,} bytes in {', '.join(self.places)}: {found}")
        lines += [f"    {path}: {how}" for path, how in self.hits]
        lines += [f"  not touched: {one}" for one in self.left_out]
        return "\n".join([*lines, f"  digest {self.as_dict()['digest']}"])

    def _repr_html_(self) -> str:
        from headwater.base import markup

        return markup.facts("certificate" if self.complete else "not complete", [("", str(self))])


def hash_of_key(key: Key, salt: str) -> str:
    """A hash of a key's values that tells nothing to who does not know them.

    >>> import headwater as hw, tempfile
    >>> base = hw.connect(tempfile.mkdtemp()).write("t", [{"id": 1}]).snapshot
    >>> one, salt = Key.of("id=1", base), "00" * 16
    >>> hash_of_key(one, salt) == hash_of_key(Key.of({"id": 1}, base), salt)
    True
    """
    said = json.dumps({name: str(value.as_py()) for name, value in sorted(key.values.items())}, ensure_ascii=False)
    return hashlib.blake2b(said.encode(), key=bytes.fromhex(salt), digest_size=32).hexdigest()


def digest_of(facts: Mapping[str, Any]) -> str:
    """The digest of a certificate without its digest."""
    plain = json.dumps({k: v for k, v in facts.items() if k != "digest"}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(plain.encode()).hexdigest()
