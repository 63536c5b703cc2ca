"""The verbs by which everything derived is proved: verify, trace, diff, forget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.derived.port import DerivingLake
    from headwater.proof.certificate import Certificate
    from headwater.proof.diff import Diff
    from headwater.proof.forget import ForgetPlan
    from headwater.proof.key import KeyText
    from headwater.proof.trace import Trace
    from headwater.proof.verification import Engine, Verifications

__all__ = ["ProofVerbs"]


class ProofVerbs:
    """The part of `Lake` that proves what is derived."""

    def verify(self: DerivingLake, *names: str, engine: Engine = "auto") -> Verifications:
        """Recompute some derived artefacts at their frontiers, or all, and compare: see `headwater.proof.verification`.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("orders", [{"id": 1, "amount": 10}])
        >>> _ = lake.view("total", "SELECT sum(amount) AS total FROM orders", refresh=True)
        >>> lake.verify().ok
        True
        """
        from headwater.proof.verification import verify

        return verify(self, *names, engine=engine)

    def diff(
        self: DerivingLake,
        name: str,
        before: int | str | None = None,
        after: int | str | None = None,
        *,
        key: str | Sequence[str] | None = None,
        limit: int = 100,
    ) -> Diff:
        """The rows of a table or artefact that differ between two versions: see `headwater.proof.diff`.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> orders = lake.write("orders", [{"id": 1, "amount": 10}])
        >>> _ = orders.append([{"id": 2, "amount": 5}])
        >>> lake.diff("orders", 0, 1).inserted
        1
        """
        from headwater.proof.diff import diff

        return diff(self, name, before, after, key=key, limit=limit)

    def trace(
        self: DerivingLake,
        table: str,
        key: KeyText,
        *,
        versions: int | None = 20,
        after: int | None = None,
        until: int | None = None,
        limit: int = 20,
        recompute_rows: int = 5_000_000,
    ) -> Trace:
        """Follow a row of a table through everything derived from it: see `headwater.proof.trace`.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("orders", [{"id": 1, "amount": 10}, {"id": 2, "amount": 5}])
        >>> _ = lake.view("large", "SELECT id, amount FROM orders WHERE amount > 7", refresh=True)
        >>> [(one.name, len(one.steps)) for one in lake.trace("orders", "id=1").nodes]
        [('orders', 1), ('large', 1)]
        """
        from headwater.proof.trace import trace

        return trace(
            self, table, key, versions=versions, after=after, until=until, limit=limit, recompute_rows=recompute_rows
        )

    def forget(
        self: DerivingLake,
        table: str,
        key: KeyText,
        *,
        also: Mapping[str, KeyText] | None = None,
        allow_outside: bool = False,
    ) -> Certificate:
        """Erase rows from a table and everything derived, with their past: see `headwater.proof.forget`.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("orders", [{"id": 1, "who": "ada lovelace"}, {"id": 2, "who": "bob"}])
        >>> lake.forget("orders", "id=1").complete
        True
        """
        from headwater.proof.forget import forget

        return forget(self, table, key, also=also, allow_outside=allow_outside)

    def plan_forget(
        self: DerivingLake,
        table: str,
        key: KeyText,
        *,
        also: Mapping[str, KeyText] | None = None,
        allow_outside: bool = False,
    ) -> ForgetPlan:
        """What `forget` would do; nothing is changed.

        >>> import headwater as hw, tempfile
        >>> lake = hw.connect(tempfile.mkdtemp())
        >>> _ = lake.write("orders", [{"id": 1, "who": "ada lovelace"}, {"id": 2, "who": "bob"}])
        >>> lake.plan_forget("orders", "id=1").rows
        {'orders': 1}
        """
        from headwater.proof.forget import plan_forget

        return plan_forget(self, table, key, also=also, allow_outside=allow_outside)
