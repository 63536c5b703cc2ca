"""Transactions: one atomic write decides each version.

An operation is a function from a snapshot to a `Proposal`. `run` calls it, then tries to create the next file of
the log with put-if-absent. If another writer took that version, the proposal is checked against every commit that
won: still right, and it is tried under the next number; not right, and the operation runs again on the new
snapshot. With ``if_version`` the caller says on which version the operation must act, and any change since then is
a `ConflictError`.

A crash before the put leaves files nobody refers to; a crash after it leaves a committed version. When storage
fails with an unknown result, the log itself answers: each commit carries a random ``txnId``, so we can tell
whether the file that lies there is ours.
"""

from __future__ import annotations

import logging
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.base import faults, settings
from headwater.base.errors import ConflictError, HeadwaterError, NotFoundError, StorageError
from headwater.base.storage import ObjectExistsError, Storage, now_ms
from headwater.lake import checkpoint, conflicts, log, snapshot
from headwater.lake.actions import Action, Commit, dump
from headwater.lake.conflicts import Proposal
from headwater.lake.snapshot import Snapshot

__all__ = ["Committed", "create", "discard", "run"]

_ENGINE = "headwater/0.1"
_STRICT_RUNS = 3
_log = logging.getLogger("headwater.lake")


@dataclass(frozen=True, slots=True)
class Committed:
    """What an operation did: the version it made (or found), and counts."""

    version: int
    operation: str
    metrics: dict[str, int | float]
    skipped: bool = False

    def __getitem__(self, name: str) -> int | float:
        return self.metrics[name]


class _RunAgain(Exception):
    def __init__(self, why: str, winner: Commit) -> None:
        self.why, self.winner = why, winner


def run(
    storage: Storage, operation: Callable[[Snapshot], Proposal], *, if_version: int | None = None
) -> Committed:
    """Run ``operation`` until its proposal is committed on the newest version."""
    retries = settings.current().commit_retries
    winner: Commit | None = None
    for attempt in range(retries + 1):
        base = snapshot.latest(storage)
        base.check_writable()
        if if_version is not None and base.version != if_version:
            newer = log.read_commit(storage, if_version + 1) if base.version > if_version else None
            if newer is None:
                raise NotFoundError.version(if_version, base.version, storage.url)
            raise ConflictError.lost("the table was changed", newer.version, newer.operation, storage.url)
        proposal = operation(base)
        if proposal.is_empty:
            return Committed(base.version, proposal.operation, proposal.metrics)
        if proposal.txn is not None and base.state.txns.get(proposal.txn[0], -1) >= proposal.txn[1]:
            discard(storage, proposal)
            return Committed(base.version, proposal.operation, proposal.metrics, skipped=True)
        try:
            return _commit(storage, base, proposal, relaxed=attempt >= _STRICT_RUNS, pinned=if_version is not None)
        except _RunAgain as again:
            winner = again.winner
            if not proposal.keeps_files:
                discard(storage, proposal)
            if if_version is not None:
                raise ConflictError.lost(again.why, winner.version, winner.operation, storage.url) from None
        time.sleep(random.uniform(0, min(0.2, 0.01 * (attempt + 1))))
    assert winner is not None
    raise ConflictError.too_many_retries(retries, storage.url)


def create(storage: Storage, proposal: Proposal) -> Committed | None:
    """Commit version 0 of a new table; None if somebody else made one first."""
    txn_id = str(uuid.uuid4())
    if not _put(storage, 0, _actions(proposal, txn_id, None), txn_id):
        discard(storage, proposal)
        return None
    snapshot.forget(storage)
    return Committed(0, proposal.operation, proposal.metrics)


def _commit(storage: Storage, base: Snapshot, proposal: Proposal, *, relaxed: bool, pinned: bool) -> Committed:
    relaxed = relaxed and base.configuration.get("delta.isolationLevel") != "Serializable"
    state, txn_id = base.state, str(uuid.uuid4())
    for attempt in range(settings.current().commit_retries + 1):
        version = state.version + 1
        faults.point("lake.commit.before_publish", storage.url)
        if _put(storage, version, _actions(proposal, txn_id, state), txn_id):
            faults.point("lake.commit.after_publish", storage.url)
            _after_commit(storage, state, version)
            return Committed(version, proposal.operation, proposal.metrics)
        newer = log.advance(storage, state)
        for number in range(version, newer.version + 1):
            winner = log.read_commit(storage, number)
            if why := conflicts.reason(proposal, winner, relaxed=relaxed):
                raise _RunAgain(why, winner)
            if pinned:
                raise _RunAgain("the table was changed", winner)
            if proposal.txn is not None and winner.txns.get(proposal.txn[0], -1) >= proposal.txn[1]:
                discard(storage, proposal)
                return Committed(newer.version, proposal.operation, proposal.metrics, skipped=True)
        state = newer
        time.sleep(random.uniform(0, min(0.2, 0.005 * (attempt + 1))))
    discard(storage, proposal)
    raise ConflictError.too_many_retries(settings.current().commit_retries, storage.url)


def _actions(proposal: Proposal, txn_id: str, before: log.LogState | None) -> list[Action]:
    now = now_ms()
    info: dict[str, Any] = {
        "timestamp": now,
        "operation": proposal.operation,
        "operationParameters": {k: v if isinstance(v, str) else str(v) for k, v in proposal.parameters.items()},
        "isBlindAppend": proposal.is_blind_append,
        "operationMetrics": {k: str(v) for k, v in proposal.metrics.items()},
        "engineInfo": _ENGINE,
        "txnId": txn_id,
    }
    if before is not None:
        info["readVersion"] = before.version
    if proposal.tags:
        info["userMetadata"] = proposal.tags.get("userMetadata", "")
        info["tags"] = dict(proposal.tags)
    metadata = proposal.metadata or (before.metadata if before else None)
    if metadata is not None and metadata.configuration.get("delta.enableInCommitTimestamps") == "true":
        # It must grow with every version, whatever the clocks say.
        info = {"inCommitTimestamp": max(now, (before.timestamp_ms if before else 0) + 1), **info}
    actions: list[Action] = [{"commitInfo": info}]
    if proposal.protocol is not None:
        actions.append(proposal.protocol.to_action())
    if proposal.metadata is not None:
        actions.append(proposal.metadata.to_action())
    if proposal.txn is not None:
        actions.append({"txn": {"appId": proposal.txn[0], "version": proposal.txn[1], "lastUpdated": now}})
    actions += proposal.domains
    actions += [f.to_action() for f in proposal.removes]
    actions += [f.to_action() for f in proposal.adds]
    actions += proposal.cdc
    return actions


def _put(storage: Storage, version: int, actions: list[Action], txn_id: str) -> bool:
    """Whether the commit is ours, now or already."""
    try:
        storage.put_if_absent(log.commit_path(version), dump(actions))
        return True
    except ObjectExistsError:
        return _is_ours(storage, version, txn_id)
    except StorageError:
        if _is_ours(storage, version, txn_id):
            return True
        raise


def _is_ours(storage: Storage, version: int, txn_id: str) -> bool:
    try:
        return bool(log.read_commit(storage, version).info.get("txnId") == txn_id)
    except (NotFoundError, StorageError):
        return False


def _after_commit(storage: Storage, before: log.LogState, version: int) -> None:
    """Bring the held snapshot forward and write a checkpoint if one is due; failing here undoes nothing."""
    try:
        state = log.extend(before, [log.read_commit(storage, version)], storage.url)
        snapshot.remember(storage, state)
        if checkpoint.due(state):
            checkpoint.write(storage, version)
            checkpoint.clean_log(storage, state)
    except HeadwaterError as e:
        _log.warning("version %s of %s is committed, but its checkpoint failed: %s", version, storage.url, e)


def discard(storage: Storage, proposal: Proposal) -> None:
    """Delete the files of a proposal that will not be committed; what is left, vacuum finds."""
    kept = {f.path for f in proposal.removes}
    from headwater.lake.partitions import decode_path

    paths = [f.path for f in proposal.adds if f.path not in kept] + [a["cdc"]["path"] for a in proposal.cdc]
    vectors = {f.deletion_vector.relative_path() for f in proposal.adds if f.deletion_vector and f.path in kept}
    for path in [decode_path(p) for p in paths] + [v for v in vectors if v]:
        try:
            storage.delete(path)
        except HeadwaterError as e:
            _log.warning("left behind for vacuum: %s (%s)", path, e.message)
