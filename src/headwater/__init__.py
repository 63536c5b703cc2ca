"""Headwater keeps everything derived from a Delta lake fresh, on Spark, from Python.

The public names live in the rooms and are loaded when they are first used, so that ``import headwater``
starts no engine and costs a few milliseconds: a command line that only prints its help, or a client
that only asks a server, never pays for Spark.

>>> import headwater as hw
>>> str(hw.Frontier.parse("orders@42 cards@17"))
'cards@17 orders@42'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from headwater.base import settings
    from headwater.base.change import ChangeBatch
    from headwater.base.errors import (
        AccessError,
        CancelledError,
        ConfigError,
        ConflictError,
        ConstraintError,
        CorruptionError,
        ExpressionError,
        HeadwaterError,
        InputError,
        LimitError,
        NotFoundError,
        PartitionError,
        ProjectError,
        RequestError,
        SchemaError,
        SearchQueryError,
        ServerError,
        SetupError,
        StorageError,
        UnsupportedError,
        UpstreamError,
    )
    from headwater.base.feature_registry import feature
    from headwater.base.frontier import Frontier
    from headwater.incremental.aggregates.general import UserGeneral
    from headwater.incremental.aggregates.registry import aggregation
    from headwater.incremental.aggregates.user import UserLinear
    from headwater.incremental.circuit.circuit import Circuit
    from headwater.incremental.circuit.feeding import Delete, Insert, Patch, Upsert
    from headwater.incremental.layout import Order
    from headwater.lake.table import Table
    from headwater.lakehouse import Lake, connect
    from headwater.pipeline.declarations import function
    from headwater.pipeline.project import Project
    from headwater.pipeline.spark import dp
    from headwater.serving.answer import Answer
    from headwater.serving.client import AsyncClient, Client
    from headwater.spark.session import spark
    from headwater.timeseries.stream import Stream
    from headwater.timeseries.windows import Hopping, OnCompletion, OnEvent, Rows, Session, Sliding, Tumbling

__all__ = [
    "AccessError",
    "Answer",
    "AsyncClient",
    "CancelledError",
    "ChangeBatch",
    "Circuit",
    "Client",
    "ConfigError",
    "ConflictError",
    "ConstraintError",
    "CorruptionError",
    "Delete",
    "ExpressionError",
    "Frontier",
    "HeadwaterError",
    "Hopping",
    "InputError",
    "Insert",
    "Lake",
    "LimitError",
    "NotFoundError",
    "OnCompletion",
    "OnEvent",
    "Order",
    "PartitionError",
    "Patch",
    "Project",
    "ProjectError",
    "RequestError",
    "Rows",
    "SchemaError",
    "SearchQueryError",
    "ServerError",
    "Session",
    "SetupError",
    "Sliding",
    "StorageError",
    "Stream",
    "Table",
    "Tumbling",
    "UnsupportedError",
    "Upsert",
    "UpstreamError",
    "UserGeneral",
    "UserLinear",
    "__version__",
    "aggregation",
    "connect",
    "dp",
    "feature",
    "function",
    "settings",
    "spark",
]

_HOMES = {
    "Answer": "headwater.serving.answer",
    "AsyncClient": "headwater.serving.client",
    "ChangeBatch": "headwater.base.change",
    "Circuit": "headwater.incremental.circuit.circuit",
    "Client": "headwater.serving.client",
    "Delete": "headwater.incremental.circuit.feeding",
    "Frontier": "headwater.base.frontier",
    "Hopping": "headwater.timeseries.windows",
    "Insert": "headwater.incremental.circuit.feeding",
    "Lake": "headwater.lakehouse",
    "OnCompletion": "headwater.timeseries.windows",
    "OnEvent": "headwater.timeseries.windows",
    "Order": "headwater.incremental.layout",
    "Patch": "headwater.incremental.circuit.feeding",
    "Project": "headwater.pipeline.project",
    "Rows": "headwater.timeseries.windows",
    "Session": "headwater.timeseries.windows",
    "Sliding": "headwater.timeseries.windows",
    "Stream": "headwater.timeseries.stream",
    "Table": "headwater.lake.table",
    "Tumbling": "headwater.timeseries.windows",
    "Upsert": "headwater.incremental.circuit.feeding",
    "UserGeneral": "headwater.incremental.aggregates.general",
    "UserLinear": "headwater.incremental.aggregates.user",
    "aggregation": "headwater.incremental.aggregates.registry",
    "connect": "headwater.lakehouse",
    "feature": "headwater.base.feature_registry",
    "function": "headwater.pipeline.declarations",
    **{name: "headwater.base.errors" for name in __all__ if name.endswith("Error")},
}

# `spark` is a function that is a room: see headwater/spark/__init__.py.
_MODULES = {"dp": "headwater.pipeline.spark.dp", "settings": "headwater.base.settings", "spark": "headwater.spark"}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(_MODULES[name])
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'headwater' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
