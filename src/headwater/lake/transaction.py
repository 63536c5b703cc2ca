"""Transactions: one atomic write decides each version.

An operation is a function from a snapshot to a `Proposal`. `run` calls it, then tries to create the next file of
the log with put-if-absent. If another writer took that version, the proposal is checked against every commit that
won: still right, and it is tried under the next number; not right, and the operation runs again on the new
snapshot. With ``if_version`` the caller says on which version the operation must act, and any change since then is
a `ConflictError`.

A crash before the put leaves files nobody refers to; a crash after it leaves a committed version. When storage
fails with an unknown result, the log itself answers: each commit carries a random ``txnId``, so we can tell
whether the file that lies there is ours. Files are deleted only when it is certain that no version names them.
"""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from headwater.base import faults, settings
from headwater.base.errors import (
    ConflictError,
    CorruptionError,
    HeadwaterError,
    InputError,
    NotFoundError,
    StorageError,
)
from headwater.base.storage import ObjectExistsError, Storage, now_ms
from headwater.lake import checkpoint, conflicts, log, snapshot
from headwater.lake.actions import Action, Commit, Metadata, dump, parse_commit
from headwater.lake.conflicts import Proposal
from headwater.lake.snapshot import Snapshot, Target

__all__ = ["Committed", "create", "discard", "run", "write_checkpoint"]

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


class _Gone(Exception):
    """The commit that a proposal was to follow does not lie there any more."""


class _RunAgain(Exception):
    def __init__(self, why: str, winner: Commit) -> None:
        self.why, self.winner = why, winner


def run(
    target: Target,
    operation: Callable[[Snapshot], Proposal],
    *,
    if_version: int | None = None,
    undo: Callable[[], None] | None = None,
    checkpoints: bool = True,
) -> Committed:
    """Run ``operation`` until its proposal is committed on the newest version.

    ``target`` is a table, or the snapshot of it that the caller has just resolved: then the first attempt acts on that,
    and nobody looks again before the commit, which is refused by the log itself if others were there first. Without
    ``checkpoints`` the caller calls `write_checkpoint` when one is due. ``undo`` deletes what the caller wrote for all
    attempts; it is called when it is certain that none was committed.
    """
    storage = target.storage if isinstance(target, Snapshot) else target
    made: list[Proposal] = []

    def attempted(base: Snapshot) -> Proposal:
        made[:] = []
        made.append(operation(base))
        return made[0]

    try:
        done = _run(target, attempted, if_version, checkpoints)
    except BaseException:
        if not made or not made[0].sent:
            _clean_up(storage, made, undo)
        raise
    if done.skipped:
        _clean_up(storage, made, undo)
    return done


def _clean_up(storage: Storage, made: list[Proposal], undo: Callable[[], None] | None) -> None:
    for proposal in made:
        discard(storage, proposal)
    if undo is not None:
        undo()


def _run(
    target: Target, operation: Callable[[Snapshot], Proposal], if_version: int | None, checkpoints: bool
) -> Committed:
    retries = settings.current().commit_retries
    storage, first = _first(target, if_version)
    table_id: str | None = None
    for attempt in range(retries + 1):
        base = first if first is not None and attempt == 0 else snapshot.latest(storage)
        if table_id not in (None, base.table_id):
            raise ConflictError.lost("the table was dropped and created again", base.version, "CREATE", storage.url)
        table_id = base.table_id
        base.check_writable()
        if if_version is not None:
            _check_version(storage, base, if_version)
        proposal = operation(base)
        if proposal.is_empty:
            return Committed(base.version, proposal.operation, proposal.metrics)
        if proposal.txn is not None and base.state.txns.get(proposal.txn[0], -1) >= proposal.txn[1]:
            return Committed(base.version, proposal.operation, proposal.metrics, skipped=True)
        relaxed = attempt >= _STRICT_RUNS
        try:
            done, state = _commit(storage, base, proposal, relaxed=relaxed, pinned=if_version is not None)
        except _RunAgain as again:
            if if_version is not None:
                winner = again.winner
                raise ConflictError.lost(again.why, winner.version, winner.operation, storage.url) from None
            discard(storage, proposal)
        except _Gone:
            # Cleaned up past us, dropped, or created again: whoever looks for the newest version finds out.
            snapshot.forget(storage)
            discard(storage, proposal)
        else:
            if state is not None and checkpoints and checkpoint.due(state):
                write_checkpoint(storage, state.version)
            return done
        time.sleep(random.uniform(0, min(0.2, 0.01 * (attempt + 1))))
    raise ConflictError.too_many_retries(retries, storage.url)


def _first(target: Target, if_version: int | None) -> tuple[Storage, Snapshot | None]:
    """The table, and the snapshot that the first attempt acts on if no look at the log is needed for it."""
    if not isinstance(target, Snapshot):
        # The commit of the version after it will tell whether it is the newest.
        return target, None if if_version is None else snapshot.held_at(target, if_version)
    fits = if_version is None or target.version == if_version
    return target.storage, target if fits and snapshot.is_newest_known(target) else None


def _check_version(storage: Storage, base: Snapshot, if_version: int) -> None:
    if isinstance(if_version, bool) or not isinstance(if_version, int) or if_version < 0:
        raise InputError.bad_argument("if_version", if_version, "a version of the table, 0 or more")
    if base.version < if_version:
        raise NotFoundError.version(if_version, base.version, storage.url)
    if base.version > if_version:
        try:
            winner = log.read_commit(storage, if_version + 1)
        except NotFoundError:  # cleaned up since
            winner = log.read_commit(storage, base.version)
        raise ConflictError.lost("the table was changed", winner.version, winner.operation, storage.url)


def create(storage: Storage, proposal: Proposal) -> Committed | None:
    """Commit version 0 of a new table; None if somebody else made one first."""
    txn_id = str(uuid.uuid4())
    try:
        won = _put(storage, 0, dump(_actions(proposal, txn_id, None)), txn_id, proposal)
    except BaseException:
        if not proposal.sent:
            discard(storage, proposal)
        raise
    snapshot.forget(storage)
    if not won:
        discard(storage, proposal)
        return None
    return Committed(0, proposal.operation, proposal.metrics)


def _commit(
    storage: Storage, base: Snapshot, proposal: Proposal, *, relaxed: bool, pinned: bool
) -> tuple[Committed, log.LogState | None]:
    """What was done, and the state after it if that is a new version."""
    relaxed = relaxed and base.configuration.get("delta.isolationLevel") != "Serializable"
    state, txn_id = base.state, str(uuid.uuid4())
    for attempt in range(settings.current().commit_retries + 1):
        version = state.version + 1
        if attempt == 0 and not log.is_there(storage, state):
            raise _Gone
        data = dump(_actions(proposal, txn_id, state))
        if _put(storage, version, data, txn_id, proposal):
            done = Committed(version, proposal.operation, proposal.metrics)
            return done, _after_commit(storage, state, version, data)
        # Wait first and look then: whoever looks first aims at a version that is gone after the wait.
        time.sleep(random.uniform(0, min(0.05, 0.002 * (attempt + 1))))
        newer = log.advance(storage, state)
        for number in range(version, newer.version + 1):
            winner = log.read_commit(storage, number)
            if why := conflicts.reason(proposal, winner, relaxed=relaxed):
                raise _RunAgain(why, winner)
            if pinned:
                raise _RunAgain("the table was changed", winner)
            if proposal.txn is not None and winner.txns.get(proposal.txn[0], -1) >= proposal.txn[1]:
                return Committed(newer.version, proposal.operation, proposal.metrics, skipped=True), None
        state = newer
    raise ConflictError.too_many_retries(settings.current().commit_retries, storage.url)


def _actions(proposal: Proposal, txn_id: str, before: log.LogState | None) -> list[Action]:
    now = now_ms()
    info: dict[str, Any] = {
        "timestamp": now,
        "operation": proposal.operation,
        "operationParameters": {k: v if isinstance(v, str) else json.dumps(v) for k, v in proposal.parameters.items()},
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
    metadata = proposal.metadata
    if _keeps_time(metadata or (before.metadata if before else None)):
        # It must grow with every version, whatever the clocks say.
        time_ms = max(now, (before.timestamp_ms if before else 0) + 1)
        info = {"inCommitTimestamp": time_ms, **info}
        if metadata is not None and before is not None and not _keeps_time(before.metadata):
            since = {
                "delta.inCommitTimestampEnablementVersion": str(before.version + 1),
                "delta.inCommitTimestampEnablementTimestamp": str(time_ms),
            }
            metadata = replace(metadata, configuration={**metadata.configuration, **since})
    actions: list[Action] = [{"commitInfo": info}]
    if proposal.protocol is not None:
        actions.append(proposal.protocol.to_action())
    if metadata is not None:
        actions.append(metadata.to_action())
    if proposal.txn is not None:
        actions.append({"txn": {"appId": proposal.txn[0], "version": proposal.txn[1], "lastUpdated": now}})
    actions += proposal.domains
    actions += [f.to_action() for f in proposal.removes]
    actions += [f.to_action() for f in proposal.adds]
    actions += proposal.cdc
    return actions


def _keeps_time(metadata: Metadata | None) -> bool:
    """Whether commits carry their own time."""
    return metadata is not None and metadata.configuration.get("delta.enableInCommitTimestamps", "").lower() == "true"


def _put(storage: Storage, version: int, data: bytes, txn_id: str, proposal: Proposal) -> bool:
    """Whether the commit is ours, now or already; ``proposal.sent`` stays set unless it certainly is not."""
    faults.point("lake.commit.before_publish", storage.url)
    failure = None

    def ready() -> None:
        if proposal.ready is not None:
            proposal.ready()
        proposal.sent = True

    try:
        storage.put_if_absent(log.commit_path(version), data, after=proposal.unflushed, ready=ready)
        return True
    except ObjectExistsError:
        pass
    except StorageError as e:
        if not proposal.sent:
            raise
        failure = e
    try:
        there: Commit | None = log.read_commit(storage, version)
    except NotFoundError:
        there = None
    except StorageError as e:
        raise StorageError.unknown_result(version, storage.url, (failure or e).message) from e
    if there is not None and there.info.get("txnId") == txn_id:
        return True
    if there is None and failure is not None:
        # A request that timed out may still arrive; one that was refused will not.
        proposal.sent = not failure.is_refusal
        raise failure
    proposal.sent = False
    return False


def _after_commit(storage: Storage, before: log.LogState, version: int, data: bytes) -> log.LogState | None:
    """Bring the held snapshot forward; failing here undoes nothing."""
    try:
        faults.point("lake.commit.after_publish", storage.url)
        there = storage.head(log.commit_path(version))  # what it holds is known, but not the time that it was given
        if there is None or there.size != len(data):
            raise CorruptionError.log_entry(log.commit_path(version), "it is not what was written", storage.url)
        state = log.extend(before, [parse_commit(data, version, there.modified_ms, storage.url)], storage.url)
        snapshot.remember(storage, state)
    except Exception as e:  # noqa: BLE001  the version is committed, whatever happens here
        _log.warning("version %s of %s is committed, but could not be read back: %s", version, storage.url, e)
        return None
    return state


def write_checkpoint(storage: Storage, version: int) -> None:
    """Write the checkpoint of a version and delete what the log does not need any more; failing here undoes nothing."""
    try:
        checkpoint.clean_log(storage, checkpoint.write(storage, version))
    except Exception as e:  # noqa: BLE001  the version is committed, whatever happens here
        _log.warning("version %s of %s is committed, but its checkpoint failed: %s", version, storage.url, e)


def discard(storage: Storage, proposal: Proposal) -> None:
    """Delete the files that a proposal which will not be committed brought; what is left, vacuum finds."""
    from headwater.lake.partitions import decode_path

    own = [f for f in proposal.adds if f.path not in proposal.keeps]
    there_before = {f.path for f in proposal.removes}
    paths = [decode_path(f.path) for f in own if f.path not in there_before]
    paths += [decode_path(a["cdc"]["path"]) for a in proposal.cdc]
    marked = [f.deletion_vector for f in own if f.path in there_before]
    paths += {v.relative_path() for v in marked if v is not None and v.storage_type == "u"}
    for path in paths:
        try:
            storage.delete(path)
        except HeadwaterError as e:
            _log.warning("left behind for vacuum: %s (%s)", path, e.message)
