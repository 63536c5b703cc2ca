"""testing: what Headwater's own tests are made of, shipped for yours.

- `assert_same_rows` compares tables as multisets of rows and shows the difference;
- `strategies` generates Arrow tables and change histories for hypothesis;
- `FaultPlan` makes named points of the write paths fail, wait or kill the process;
- `DerivedContract` checks the seven laws on any derived artefact;
- `s3_server`, `azure_server` and `gcs_server` start real object stores on the loopback interface;
- `requests` counts what an operation asks of a real S3 server, on the wire;
- `HOSTILE_TEXTS` are strings that have become code somewhere.

Importing this package loads none of them: each name is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.testing import strategies
    from headwater.testing.derived_contract import DerivedContract, Subject
    from headwater.testing.faults import FaultPlan, InjectedError, SimulatedCrash
    from headwater.testing.hostile import HOSTILE_TEXTS
    from headwater.testing.oracles import assert_same_rows, row_counts

__all__ = [
    "HOSTILE_TEXTS",
    "DerivedContract",
    "FaultPlan",
    "InjectedError",
    "SimulatedCrash",
    "Subject",
    "assert_same_rows",
    "row_counts",
    "strategies",
]

_HOMES = {
    "HOSTILE_TEXTS": "hostile",
    "DerivedContract": "derived_contract",
    "FaultPlan": "faults",
    "InjectedError": "faults",
    "SimulatedCrash": "faults",
    "Subject": "derived_contract",
    "assert_same_rows": "oracles",
    "row_counts": "oracles",
}


def __getattr__(name: str) -> object:
    if name == "strategies":
        return importlib.import_module("headwater.testing.strategies")
    if name in _HOMES:
        return getattr(importlib.import_module(f"headwater.testing.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
