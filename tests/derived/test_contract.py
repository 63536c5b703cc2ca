"""The derived contract holds for a small honest artefact, and each law catches the liar made for it.

The source is a folder with an ``id`` and numbered files, one for each commit: ``{"data_change", "adds", "removes"}`` with
rows ``[shop, amount]``. The artefact counts the rows of at least 10 by shop. Its data lies in a new file for each refresh, and
its commit point is one ``os.replace`` of ``manifest.json``, which names that file and the frontier.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from headwater.base import faults
from headwater.base.change import ChangeBatch
from headwater.base.errors import InputError
from headwater.base.frontier import Frontier, TableIdentity
from headwater.derived.comparison import compare
from headwater.derived.contract import Derived
from headwater.derived.plan import RefreshPlan
from headwater.derived.reports import Refresh
from headwater.testing import DerivedContract, FaultPlan

SCHEMA = pa.schema([("shop", pa.string()), ("n", pa.int64())])


def put(path: Path, content: object) -> None:
    """Write a file in one atomic step."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content))
    part.replace(path)


class Source:
    """Numbered commit files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        if not (folder / "id").exists():
            (folder / "id").write_text(uuid.uuid4().hex)

    @property
    def identity(self) -> TableIdentity:
        return TableIdentity((self.folder / "id").read_text())

    def newest(self) -> int:
        return len(list(self.folder.glob("*.json"))) - 1

    def load(self, version: int) -> dict[str, Any]:
        commit: dict[str, Any] = json.loads((self.folder / f"{version:05}.json").read_text())
        return commit

    def write(self, *, adds: list[Any], removes: list[Any], data_change: bool = True) -> None:
        path = self.folder / f"{self.newest() + 1:05}.json"
        put(path, {"adds": adds, "removes": removes, "data_change": data_change})

    def rows(self, version: int) -> Counter[tuple[str, int]]:
        rows: Counter[tuple[str, int]] = Counter()
        for number in range(version + 1):
            commit = self.load(number)
            rows.update(map(tuple, commit["adds"]))
            rows.subtract(map(tuple, commit["removes"]))
        return +rows


class ShopCounts(Derived):
    """``SELECT shop, count(*) AS n FROM source WHERE amount >= 10 GROUP BY shop``, kept in a folder."""

    sources: ClassVar[tuple[str, ...]] = ("source",)

    def __init__(self, source: Source, folder: Path) -> None:
        self.source = source
        self.folder = folder
        folder.mkdir(exist_ok=True)

    @property
    def name(self) -> str:
        return self.folder.name

    def manifest(self) -> dict[str, Any]:
        path = self.folder / "manifest.json"
        loaded: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"frontier": "", "data": None}
        return loaded

    @property
    def definition(self) -> str:
        return "SELECT shop, count(*) AS n FROM source WHERE amount >= 10 GROUP BY shop"

    @property
    def frontier(self) -> Frontier:
        manifest = self.manifest()
        identities = {"source": TableIdentity(manifest["id"])} if manifest.get("id") else {}
        return Frontier.parse(manifest["frontier"]).identified(identities)

    def lag(self) -> dict[str, int | None]:
        return {"source": self.source.newest() - self.frontier.get("source", -1)}

    def plan(self, until: Frontier | None = None) -> RefreshPlan:
        behind = self.goal(self.frontier, until) > self.frontier.get("source", -1)
        return RefreshPlan(mode="incremental" if behind else "noop", reason="by versions")

    def drop(self) -> list[str]:
        shutil.rmtree(self.folder)
        return [self.name]

    def counts(self) -> Counter[str]:
        data = self.manifest()["data"]
        return Counter(json.loads((self.folder / data).read_text())) if data else Counter()

    def read(self) -> pa.RecordBatchReader:
        return to_table(self.counts()).to_reader()

    def recompute(self, at: Frontier) -> pa.RecordBatchReader:
        rows = self.source.rows(at["source"])
        return to_table(Counter(shop for shop, amount in rows.elements() if amount >= 10)).to_reader()

    def refresh(self, until: Frontier | None = None) -> Refresh:
        began = time.monotonic()
        before = self.frontier
        if self.is_another(before):
            return self.anew(before)
        goal = self.goal(before, until)
        if goal == before.get("source", -1):
            return Refresh(before=before, after=before, mode="noop", reason="up to date")
        counts, rows_in = self.changed(before.get("source", -1), goal)
        after = before.advance("source", goal)
        rows_out = len(self.counts().items() ^ counts.items())
        self.commit(counts, after)
        seconds = time.monotonic() - began
        return Refresh(
            before=before, after=after, mode="incremental", rows_in=rows_in, rows_out=rows_out, seconds=seconds
        )

    def is_another(self, before: Frontier) -> bool:
        known = before.identities.get("source")
        return known is not None and known.id != self.source.identity.id

    def anew(self, before: Frontier) -> Refresh:
        """The source is another one than before: begin again."""
        after = Frontier(source=self.source.newest())
        counts = Counter(shop for shop, amount in self.source.rows(after["source"]).elements() if amount >= 10)
        rows_out = len(self.counts().items() ^ counts.items())
        self.commit(counts, after)
        return Refresh(
            before=Frontier(), after=after, mode="full", rows_out=rows_out, reason="the source is another one"
        )

    def goal(self, before: Frontier, until: Frontier | None) -> int:
        have = before.get("source", -1)
        return self.source.newest() if until is None else max(have, until.get("source", have))

    def changed(self, after: int, until: int) -> tuple[Counter[str], int]:
        """The counts at ``until``, and the rows that were read to get there."""
        counts, rows_in = self.counts(), 0
        for version in range(after + 1, until + 1):
            faults.point("counts.read", str(version))
            commit = self.source.load(version)
            if commit["data_change"]:
                rows_in += self.absorb(counts, commit)
        return +counts, rows_in

    def absorb(self, counts: Counter[str], commit: dict[str, Any]) -> int:
        counts.update(shop for shop, amount in commit["adds"] if amount >= 10)
        counts.subtract(shop for shop, amount in commit["removes"] if amount >= 10)
        return len(commit["adds"]) + len(commit["removes"])

    def commit(self, counts: Counter[str], after: Frontier) -> None:
        name = f"data-{len(list(self.folder.iterdir()))}.json"
        faults.point("counts.before_data")
        put(self.folder / name, counts)
        faults.point("counts.before_commit")
        put(self.folder / "manifest.json", {"frontier": str(after), "data": name, "id": self.source.identity.id})
        faults.point("counts.after_commit")


def to_table(counts: Counter[str]) -> pa.Table:
    rows = [{"shop": shop, "n": n} for shop, n in sorted(counts.items()) if n]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


class FolderSubject:
    """A source folder with some rows, and artefacts beside it."""

    def __init__(self, folder: Path, kind: type[ShopCounts], seed: int) -> None:
        self.folder, self.kind = folder, kind
        self.source = Source(folder / "source")
        rng = random.Random(seed)
        self.source.write(adds=[[rng.choice("abc"), rng.randint(0, 30)] for _ in range(8)], removes=[])

    def open(self, name: str) -> Derived:
        return self.kind(self.source, self.folder / name)

    def head(self) -> Frontier:
        return Frontier(source=self.source.newest())

    def commit(self, rng: random.Random) -> None:
        rows = sorted(self.source.rows(self.source.newest()).elements())
        removes = rng.sample(rows, min(len(rows), rng.choice([0, 0, 1, 2])))
        adds = [[rng.choice("abcd"), rng.randint(5, 30)] for _ in range(rng.choice([0, 1, 1, 3]))]
        self.source.write(adds=adds, removes=[list(row) for row in removes])

    replacements = ("recreate",)

    def replace(self, how: str, rng: random.Random) -> None:
        assert how == "recreate"
        versions = self.source.newest() + 1
        shutil.rmtree(self.source.folder)
        self.source = Source(self.source.folder)
        self.source.write(adds=[["e", rng.randint(10, 30)] for _ in range(4)], removes=[])
        for _ in range(versions + 2):
            self.commit(rng)

    def rewrite(self) -> None:
        rows = [list(row) for row in self.source.rows(self.source.newest()).elements()]
        self.source.write(adds=rows, removes=rows, data_change=False)


class TestShopCounts(DerivedContract):
    def open_subject(self, folder: Path, seed: int) -> FolderSubject:
        return FolderSubject(folder, ShopCounts, seed)


# -- liars ---------------------------------------------------------------------------------------------------------


class GoesBack(ShopCounts):
    """Follows ``until`` to wherever it points."""

    def goal(self, before: Frontier, until: Frontier | None) -> int:
        return self.source.newest() if until is None else until.get("source", before.get("source", -1))

    def refresh(self, until: Frontier | None = None) -> Refresh:
        goal = self.goal(self.frontier, until)
        if 0 <= goal < self.frontier.get("source", -1):
            rows = self.recompute(Frontier(source=goal)).read_all().to_pylist()
            put(self.folder / "data-old.json", {row["shop"]: row["n"] for row in rows})
            put(self.folder / "manifest.json", {"frontier": f"source@{goal}", "data": "data-old.json"})
            return Refresh(before=self.frontier, after=self.frontier, mode="noop")
        return super().refresh(until)


class StopsShort(ShopCounts):
    """Never takes the newest commit, and says nothing of it."""

    def goal(self, before: Frontier, until: Frontier | None) -> int:
        return max(before.get("source", -1), min(super().goal(before, until), self.source.newest() - 1))


class FrontierFirst(ShopCounts):
    """Moves the frontier, then the data."""

    def commit(self, counts: Counter[str], after: Frontier) -> None:
        data = self.manifest()["data"]
        put(self.folder / "manifest.json", {"frontier": str(after), "data": data})
        faults.point("counts.between")
        put(self.folder / "data.json", counts)
        put(self.folder / "manifest.json", {"frontier": str(after), "data": "data.json"})


class DataFirst(ShopCounts):
    """Two steps: overwrites the data in place, then moves the frontier."""

    def commit(self, counts: Counter[str], after: Frontier) -> None:
        put(self.folder / "data.json", counts)
        faults.point("counts.between")
        put(self.folder / "manifest.json", {"frontier": str(after), "data": "data.json"})


class AppliesTwice(ShopCounts):
    """Takes the last commit again at every refresh."""

    def refresh(self, until: Frontier | None = None) -> Refresh:
        before = self.frontier
        if not before or self.goal(before, until) > before["source"]:
            return super().refresh(until)
        counts = self.counts()
        self.absorb(counts, {"adds": [["a", 99]], "removes": []})
        self.commit(counts, before)
        return Refresh(before=before, after=before, mode="noop")


class LeapsOver(ShopCounts):
    """Applies only the last commit of those it was given."""

    def changed(self, after: int, until: int) -> tuple[Counter[str], int]:
        return super().changed(after if after < 0 else until - 1, until)


class LosesDeletes(ShopCounts):
    """Thinks that rows only ever come."""

    def absorb(self, counts: Counter[str], commit: dict[str, Any]) -> int:
        return super().absorb(counts, {**commit, "removes": []})


class KeepsPending(ShopCounts):
    """Notes increments in a side file first, and finds them there again after a crash."""

    def commit(self, counts: Counter[str], after: Frontier) -> None:
        pending = self.folder / "pending.json"
        found = Counter(json.loads(pending.read_text())) if pending.exists() else Counter[str]()
        put(pending, counts)
        super().commit(counts + found, after)
        pending.unlink()


class BelievesRewrites(ShopCounts):
    """Does not look at the flag: files that came and went are rows that came and went."""

    def changed(self, after: int, until: int) -> tuple[Counter[str], int]:
        counts, rows_in = self.counts(), 0
        for version in range(after + 1, until + 1):
            rows_in += self.absorb(counts, self.source.load(version))
        return +counts, rows_in


class IgnoresRewrites(ShopCounts):
    """Does not follow a rewrite with its frontier."""

    def goal(self, before: Frontier, until: Frontier | None) -> int:
        goal = super().goal(before, until)
        while goal > before.get("source", -1) and not self.source.load(goal)["data_change"]:
            goal -= 1
        return goal


class PassesNoPoints(ShopCounts):
    """Cannot be made to crash."""

    def changed(self, after: int, until: int) -> tuple[Counter[str], int]:
        rows = self.source.rows(until)
        return Counter(shop for shop, amount in rows.elements() if amount >= 10), 0

    def commit(self, counts: Counter[str], after: Frontier) -> None:
        put(self.folder / f"data-{after['source']}.json", counts)
        put(self.folder / "manifest.json", {"frontier": str(after), "data": f"data-{after['source']}.json"})


class TrustsNames(ShopCounts):
    """Takes whatever lies under the name of its source for its source."""

    def is_another(self, before: Frontier) -> bool:
        return False


class ForgetsToCompute(ShopCounts):
    """Notices that the source is another one, and only takes its frontier."""

    def anew(self, before: Frontier) -> Refresh:
        after = Frontier(source=self.source.newest())
        self.commit(self.counts(), after)
        return Refresh(before=Frontier(), after=after, mode="full", reason="the source is another one")


@pytest.mark.parametrize(
    ("liar", "law"),
    [
        (GoesBack, 1),
        (StopsShort, 1),
        (FrontierFirst, 2),
        (DataFirst, 2),
        (AppliesTwice, 3),
        (LeapsOver, 4),
        (LosesDeletes, 5),
        (FrontierFirst, 6),
        (DataFirst, 6),
        (KeepsPending, 6),
        (BelievesRewrites, 7),
        (IgnoresRewrites, 7),
        (PassesNoPoints, 2),
        (PassesNoPoints, 6),
        (TrustsNames, 8),
        (ForgetsToCompute, 8),
    ],
)
def test_each_law_catches_its_liar(liar: type[ShopCounts], law: int, tmp_path: Path) -> None:
    class Contract(DerivedContract):
        def open_subject(self, folder: Path, seed: int) -> FolderSubject:
            return FolderSubject(folder, liar, seed)

    (test,) = (getattr(Contract(), name) for name in dir(Contract) if name.startswith(f"test_law_{law}"))
    with pytest.raises(AssertionError, match=f"law {law}"):
        test(tmp_path)


def test_a_subject_must_be_supplied(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError):
        DerivedContract().test_law_1_the_frontier_only_grows(tmp_path)


# -- kill -9 -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_kill_9_leaves_before_or_after(tmp_path: Path) -> None:
    path = os.pathsep.join(filter(None, sys.path))
    running = []
    for point in ("counts.before_commit", "counts.after_commit"):
        folder = tmp_path / point
        folder.mkdir()
        subject = FolderSubject(folder, ShopCounts, seed=5)
        before = subject.open("it").refresh().after
        for _ in range(3):
            subject.commit(random.Random(9))
        env = {**os.environ, "HEADWATER_FAULTS": f"{point}:kill", "PYTHONPATH": path}
        child = subprocess.Popen([sys.executable, __file__, str(folder)], env=env)
        running.append((child, subject, before if point == "counts.before_commit" else subject.head()))
    endings = [child.wait() for child, _, _ in running]
    assert endings == [-signal.SIGKILL, -signal.SIGKILL]
    for _, subject, expected in running:
        assert subject.open("it").frontier == expected
        assert subject.open("it").verify().equal
        assert subject.open("it").refresh().after == subject.head()
        assert subject.open("it").verify().equal


# -- reports -------------------------------------------------------------------------------------------------------


def test_a_report_holds_its_invariants() -> None:
    a, b = Frontier(t=1), Frontier(t=2)
    with pytest.raises(InputError, match="mode"):
        Refresh(before=a, after=b, mode="maybe")  # type: ignore[arg-type]
    for wrong in (
        {"before": b, "after": a, "mode": "full"},
        {"before": a, "after": b, "mode": "noop"},
        {"before": a, "after": a, "mode": "noop", "rows_out": 1},
        {"before": a, "after": b, "mode": "full", "rows_in": -1},
        {"before": a, "after": b, "mode": "full", "rows_out": -1},
    ):
        with pytest.raises(AssertionError):
            Refresh(**wrong)
    assert str(Refresh(before=Frontier(), after=b, mode="full", rows_in=1234, rows_out=5, reason="first build")) == (
        "full: nothing -> t@2, 1,234 rows in, 5 rows out, 0.000 s (first build)"
    )
    assert str(Refresh(before=a, after=a, mode="noop")).startswith("noop: at t@1, ")


def test_a_verification_shows_what_differs() -> None:
    at = Frontier(t=3)
    wrong = compare(at, expected=pa.table({"n": [1, 1, 2]}), actual=pa.table({"n": [2, 3]}))
    assert not wrong.equal
    assert wrong.missing == ChangeBatch.from_table({"n": [1], "_weight": [2]})
    assert wrong.extra == ChangeBatch.from_table({"n": [3], "_weight": [1]})
    assert str(wrong) == "differs at t@3: 2 missing, 1 too many (2 rows)"
    right = compare(at, expected=pa.table({"n": [1, 2]}), actual=pa.table({"n": [2, 1]}))
    assert right.equal
    assert str(right) == "equal at t@3 (2 rows)"


if __name__ == "__main__":
    place = Path(sys.argv[1])
    with FaultPlan.from_env():
        ShopCounts(Source(place / "source"), place / "it").refresh()
