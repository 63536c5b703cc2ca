"""The contract test of derived artefacts: one test for each of the eight laws of `headwater.derived.contract`.

To put a new kind of artefact under it, write a `Subject` and subclass `DerivedContract` in a test module::

    class TestViewContract(DerivedContract):
        def open_subject(self, folder, seed):
            return ViewSubject(folder, seed)

A subject is a small world in a folder: source tables that can be committed to at random, and any number of artefacts
over them, by name. `Subject.open` gives a fresh handle, as another process would get, so that what a test sees through
it is what is durable. Crashes are made at the artefact's fault points (`headwater.base.faults.point`): the more of
them a refresh passes, before and after its commit point, the more the laws 2 and 6 are worth; with none they fail.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Protocol

from headwater.base.errors import HeadwaterError
from headwater.testing.faults import FaultPlan, SimulatedCrash
from headwater.testing.oracles import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from headwater.base.frontier import Frontier
    from headwater.derived.contract import Derived
    from headwater.derived.reports import Refresh

__all__ = ["DerivedContract", "Subject"]


class Subject(Protocol):
    """What an implementer supplies: sources that change, and artefacts over them."""

    def open(self, name: str) -> Derived:
        """A fresh handle on the artefact ``name``, which is created, but not built, at the first call."""

    def commit(self, rng: random.Random) -> None:
        """One random commit to a source: inserts, updates, deletes, a mixture, or nothing at all."""

    def rewrite(self) -> None:
        """A commit to each source that changes its files and none of its rows, as OPTIMIZE does."""

    def replace(self, how: str, rng: random.Random) -> None:
        """Let a source's name, or that of a column, stand for something else, in one of the ways of `replacements`.

        A table that is made again gets at least as many versions as it had before, and other rows: so an artefact that
        only compares version numbers goes on from changes that are another table's.
        """

    @property
    def replacements(self) -> Sequence[str]:
        """The ways of `replace`: a source dropped and made again, repartitioned, a column that is another one."""

    def head(self) -> Frontier:
        """The newest version of every source."""


class DerivedContract:
    """Subclass it, name the subclass ``Test…``, and override `open_subject`."""

    seeds: tuple[int, ...] = (1, 2, 3)
    """Each law is tested once with each seed."""

    commits: int = 5
    """Commits made to the sources between the steps of a test."""

    most_crashes: int = 40
    """Crashes tried by law 6 for each seed, spread evenly where a refresh passes more points."""

    def open_subject(self, folder: Path, seed: int) -> Subject:
        """A new world in ``folder``: sources with at least one version each, and some rows."""
        raise NotImplementedError

    # -- the laws --------------------------------------------------------------------------------------------------

    def test_law_1_the_frontier_only_grows(self, tmp_path: Path) -> None:
        for subject, rng in self._worlds(tmp_path):
            derived = subject.open("it")
            seen = [derived.frontier]
            assert not seen[0], "law 1: an artefact that was never built has a frontier without entries"
            for _ in range(self.commits):
                target = subject.head()
                subject.commit(rng)
                for until in (rng.choice(seen), target, None, rng.choice(seen)):
                    before = derived.frontier
                    report = derived.refresh(until)
                    after = derived.frontier
                    goal = subject.head() if until is None else until
                    assert before <= after, f"law 1: refresh({until}) went from {before} back to {after}"
                    assert after == before | goal, f"law 1: refresh({until}) at {before} went to {after}, not {goal}"
                    assert (report.before, report.after) == (before, after), "law 1: the report tells other frontiers"
                    assert subject.open("it").frontier == after, "law 1: another handle sees another frontier"
                    seen.append(after)

    def test_law_2_data_and_frontier_appear_together(self, tmp_path: Path) -> None:
        for subject, rng in self._worlds(tmp_path):
            subject.open("it").refresh()
            self._commit(subject, rng)
            old_handle = subject.open("it")

            def look(point: str, _detail: str, subject: Subject = subject) -> None:
                _check_pair(subject.open("it"), f"law 2: seen from outside at {point}")

            with FaultPlan().call_at("*", look) as plan:
                subject.open("it").refresh()
            assert plan.reached, "law 2: the refresh passed no fault point, so nothing could be seen on the way"
            _check_pair(old_handle, "law 2: through a handle opened before the refresh")
            _check_pair(subject.open("it"), "law 2: after the refresh")

    def test_law_3_refresh_is_idempotent(self, tmp_path: Path) -> None:
        for subject, rng in self._worlds(tmp_path):
            for _ in range(3):
                derived = subject.open("it")
                derived.refresh()
                at, rows = derived.frontier, derived.to_arrow()
                for again, until in ((derived, None), (derived, at), (subject.open("it"), None)):
                    report = again.refresh(until)
                    assert report.mode == "noop", f"law 3: the second refresh was not a noop but {report}"
                    assert again.frontier == at, "law 3: the second refresh moved the frontier"
                    assert_same_rows(again.read(), rows, where="law 3: after the second refresh")
                self._commit(subject, rng)

    def test_law_4_steps_equal_one_leap(self, tmp_path: Path) -> None:
        for subject, rng in self._worlds(tmp_path):
            leaps, steps, late = (subject.open(name) for name in ("leaps", "steps", "late"))
            leaps.refresh()
            targets = []
            for _ in range(self.commits):
                subject.commit(rng)
                targets.append(subject.head())
                steps.refresh()
            for target in targets:
                late.refresh(target)
                _check_pair(late, f"law 4: in steps until {target}, late")
            leaps.refresh()
            for other, how in ((steps, "at every commit"), (late, "in steps, afterwards")):
                assert other.frontier == leaps.frontier, f"law 4: {how} ends at another frontier"
                assert_same_rows(other.read(), leaps.read(), where=f"law 4: {how} against one leap")

    def test_law_5_the_result_equals_a_recomputation(self, tmp_path: Path) -> None:
        for subject, rng in self._worlds(tmp_path):
            for _ in range(self.commits):
                derived = subject.open("it")
                derived.refresh()
                _check_pair(derived, "law 5: at the head")
                self._commit(subject, rng, most=3)
                _check_pair(derived, "law 5: behind the head")
                verification = derived.verify()
                assert verification.equal, f"law 5: verify() says {verification}"
                assert verification.frontier == derived.frontier, "law 5: verify() looked at another frontier"

    def test_law_6_a_crash_leaves_before_or_after(self, tmp_path: Path) -> None:
        for subject, rng in self._worlds(tmp_path):
            subject.open("built").refresh()
            first = self._passed(subject, "dry")  # a first build
            self._commit(subject, rng)
            later = self._passed(subject, "built")  # a refresh of what is there
            assert first, "law 6: a first build passed no fault point, so it could not be made to crash"
            assert later, "law 6: a refresh passed no fault point, so it could not be made to crash"
            starts = [("from nothing", None, first), ("from a", subject.head(), later)]
            self._commit(subject, rng)
            for title, start, points in starts:
                for number, (point, nth) in enumerate(self._spread(points)):
                    self._crash_once(subject, f"{title.replace(' ', '_')}_{number}", start, point, nth)

    def test_law_7_a_rewrite_changes_nothing(self, tmp_path: Path) -> None:
        for subject, rng in self._worlds(tmp_path):
            self._commit(subject, rng)
            derived = subject.open("it")
            derived.refresh()
            rows = derived.to_arrow()
            for _ in range(2):
                subject.rewrite()
                report = derived.refresh()
                assert derived.frontier == subject.head(), "law 7: the frontier did not follow a rewrite"
                assert report.mode != "full", "law 7: a rewrite made it recompute everything"
                assert report.rows_in == 0, f"law 7: {report.rows_in} rows of a rewrite were read as changes"
                assert report.rows_out == 0, f"law 7: a rewrite changed {report.rows_out} rows"
                assert_same_rows(derived.read(), rows, where="law 7: after a rewrite")
            subject.rewrite()
            self._commit(subject, rng)
            subject.rewrite()
            derived.refresh()
            _check_pair(derived, "law 7: rewrites among other commits")

    def test_law_8_a_replaced_source_is_noticed(self, tmp_path: Path) -> None:
        for subject, rng in self._worlds(tmp_path):
            assert subject.replacements, "law 8: the subject has no way to replace a source"
            for how in subject.replacements:
                derived = subject.open(f"it_{how}")
                derived.refresh()
                self._commit(subject, rng)
                derived.refresh()
                before, rows = derived.frontier, derived.read().read_all()
                subject.replace(how, rng)
                where = f"law 8: after a source was replaced ({how})"
                noticed = self._refresh_or_refuse(derived, where)
                if noticed:
                    assert_same_rows(derived.read().read_all(), rows, where=f"{where} and refused")
                    assert derived.frontier == before, f"{where}, a refused refresh moved the frontier"
                    continue
                assert derived.frontier == subject.head(), f"{where}, the frontier is {derived.frontier}"
                _check_pair(derived, where)
                self._commit(subject, rng)
                subject.open(f"it_{how}").refresh()
                _check_pair(subject.open(f"it_{how}"), f"{where}, and more commits")

    # -- the parts -------------------------------------------------------------------------------------------------

    def crash_refresh(self, subject: Subject, name: str, plan: FaultPlan) -> Refresh | None:
        """Refresh ``name`` under ``plan``; None if it crashed. Override it to crash in another way."""
        try:
            with plan:
                return subject.open(name).refresh()
        except SimulatedCrash:
            return None

    def _refresh_or_refuse(self, derived: Derived, where: str) -> bool:
        """Refresh; whether it was refused, with a typed error that says why."""
        try:
            derived.refresh()
        except HeadwaterError as error:
            assert error.hint, f"{where}, the refusal has no hint: {error}"
            return True
        return False

    def _worlds(self, folder: Path) -> Iterator[tuple[Subject, random.Random]]:
        for seed in self.seeds:
            place = folder / f"seed{seed}"
            place.mkdir()
            yield self.open_subject(place, seed), random.Random(seed)

    def _commit(self, subject: Subject, rng: random.Random, *, most: int | None = None) -> None:
        for _ in range(rng.randint(1, most or self.commits)):
            subject.commit(rng)

    def _passed(self, subject: Subject, name: str) -> list[tuple[str, int]]:
        with FaultPlan() as plan:
            subject.open(name).refresh()
        passed = plan.reached
        return [(point, passed[: position + 1].count(point)) for position, point in enumerate(passed)]

    def _spread(self, points: list[tuple[str, int]]) -> list[tuple[str, int]]:
        most = max(1, self.most_crashes // 2)
        if len(points) <= most:
            return points
        return [points[position * (len(points) - 1) // max(1, most - 1)] for position in range(most)]

    def _crash_once(self, subject: Subject, name: str, start: Frontier | None, point: str, nth: int) -> None:
        if start is not None:
            subject.open(name).refresh(start)
        before, goal = subject.open(name).frontier, subject.head()
        where = f"law 6: after a crash at hit {nth} of {point}"
        done = self.crash_refresh(subject, name, FaultPlan().crash_at(point, nth=nth))
        found = subject.open(name).frontier
        assert found in (before, goal), f"{where}, the frontier is {found}, neither {before} nor {goal}"
        assert done is None or found == goal, f"{where}, refresh returned without having reached {goal}"
        _check_pair(subject.open(name), where)
        subject.open(name).refresh()
        assert subject.open(name).frontier == goal, f"{where}, the next refresh did not reach {goal}"
        _check_pair(subject.open(name), f"{where} and another refresh")


def _check_pair(derived: Derived, where: str) -> None:
    """The data belongs to the frontier; of an artefact that was never built there is nothing to compare."""
    at = derived.frontier
    if at:
        assert_same_rows(derived.read(), derived.recompute(at), where=f"{where}, at {at}")
