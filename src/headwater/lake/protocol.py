"""Protocol: which tables may be read and written here, and what a new table asks of others.

A Delta table names the features a reader and a writer must honour. Reading or writing one without honouring
them gives wrong rows or a broken table, so what is not on these lists is refused before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from headwater.base.errors import SchemaError, UnsupportedError
from headwater.base.schema import DeltaType, Schema, type_text
from headwater.lake.actions import Metadata, Protocol

__all__ = ["check_readable", "check_writable", "for_table", "supports", "with_features"]

_READABLE = {
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "typeWidening",
    "typeWidening-preview",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
_WRITABLE = _READABLE | {
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "domainMetadata",
    "generatedColumns",
    "inCommitTimestamp",
    "invariants",
}
# Legacy versions stand for fixed sets of features.
_WRITER_VERSIONS = {
    2: {"appendOnly", "invariants"},
    3: {"checkConstraints"},
    4: {"changeDataFeed", "generatedColumns"},
    5: {"columnMapping"},
    6: {"identityColumns"},
}
# Features of both lists of the protocol; the others are for writers only.
_BOTH = {"columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint", "vacuumProtocolCheck"}


def _reader_features(protocol: Protocol) -> set[str]:
    if protocol.min_reader >= 3:
        return set(protocol.reader_features or ())
    return {"columnMapping"} if protocol.min_reader == 2 else set()


def _writer_features(protocol: Protocol) -> set[str]:
    if protocol.min_writer >= 7:
        return set(protocol.writer_features or ())
    implied = (names for v, names in _WRITER_VERSIONS.items() if v <= protocol.min_writer)
    return set().union(*implied)


def supports(protocol: Protocol, feature: str) -> bool:
    """Whether the table has ``feature`` in its protocol."""
    return feature in _writer_features(protocol) | _reader_features(protocol)


def _harmless(feature: str, metadata: Metadata) -> bool:
    """A feature that is listed but that no column uses asks nothing of us."""
    text = metadata.schema.to_json()
    if feature in ("variantType", "variantType-preview", "variantShredding", "variantShredding-preview"):
        return '"variant"' not in text
    if feature == "identityColumns":
        return "delta.identity." not in text
    if feature == "rowTracking":
        # Where it is listed every new file must be given row ids, unless that is suspended.
        return metadata.configuration.get("delta.rowTrackingSuspended", "").lower() == "true"
    if feature in ("clustering", "allowColumnDefaults", "icebergCompatV1", "icebergCompatV2"):
        return {
            "clustering": False,
            "allowColumnDefaults": "CURRENT_DEFAULT" not in text,
            "icebergCompatV1": metadata.configuration.get("delta.enableIcebergCompatV1") != "true",
            "icebergCompatV2": metadata.configuration.get("delta.enableIcebergCompatV2") != "true",
        }[feature]
    return False


def check_readable(protocol: Protocol, metadata: Metadata, where: str) -> None:
    """Raise if reading the table here could give wrong rows."""
    unknown = {f for f in _reader_features(protocol) - _READABLE if not _harmless(f, metadata)}
    if protocol.min_reader > 3:
        unknown.add(f"reader version {protocol.min_reader}")
    if unknown:
        raise UnsupportedError.reader_feature(sorted(unknown), where)
    for f in metadata.schema.fields:
        if {"variant", "void"} & set(_leaves(f.type)):
            raise UnsupportedError.column_type(f.name, type_text(f.type), "select the other columns with Spark")
        try:
            assert f.arrow is not None
        except SchemaError as e:
            hint = "a newer engine wrote it: read the table there"
            raise UnsupportedError.column_type(f.name, type_text(f.type), hint) from e


def _leaves(dtype: DeltaType) -> Iterator[str]:
    """The plain types inside a type."""
    if isinstance(dtype, str):
        yield dtype
        return
    inner = [f["type"] for f in dtype.get("fields", ())]
    for part in [*inner, *(dtype[k] for k in ("elementType", "keyType", "valueType") if k in dtype)]:
        yield from _leaves(part)


def check_writable(protocol: Protocol, metadata: Metadata, where: str) -> None:
    """Raise if writing the table here could break a promise it makes to others."""
    check_readable(protocol, metadata, where)
    unknown = {f for f in _writer_features(protocol) - _WRITABLE if not _harmless(f, metadata)}
    if protocol.min_writer > 7:
        unknown.add(f"writer version {protocol.min_writer}")
    if unknown:
        raise UnsupportedError.writer_feature(sorted(unknown), where)


def _is_on(configuration: Mapping[str, str], name: str) -> bool:
    return configuration.get(name, "").lower() == "true"


def needed(schema: Schema, configuration: Mapping[str, str]) -> set[str]:
    """The features that a table of this schema and these properties must list."""
    features = {"appendOnly", "invariants"}
    if "timestamp_ntz" in schema.to_json():
        features.add("timestampNtz")
    if any(f.generation for f in schema.fields):
        features.add("generatedColumns")
    if any(k.startswith("delta.constraints.") for k in configuration):
        features.add("checkConstraints")
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    for name, feature in (
        ("delta.enableDeletionVectors", "deletionVectors"),
        ("delta.enableChangeDataFeed", "changeDataFeed"),
        ("delta.enableTypeWidening", "typeWidening"),
        ("delta.enableInCommitTimestamps", "inCommitTimestamp"),
    ):
        if _is_on(configuration, name):
            features.add(feature)
    if configuration.get("delta.checkpointPolicy") == "v2":
        features.add("v2Checkpoint")
    return features


def for_table(schema: Schema, configuration: Mapping[str, str]) -> Protocol:
    """The protocol of a new table: the old numbers where they suffice, features where they do not."""
    return with_features(Protocol(1, 2), needed(schema, configuration))


def with_features(protocol: Protocol, features: Iterable[str]) -> Protocol:
    """``protocol`` raised so that it lists ``features``; itself if it does already."""
    have = _writer_features(protocol) | _reader_features(protocol)
    want = set(features)
    if want <= have:
        return protocol
    if not (want | have) - {"appendOnly", "invariants", "checkConstraints"} and protocol.min_writer < 7:
        return replace(protocol, min_writer=3)
    both = have | want
    readers = both & _BOTH
    # A legacy reader version 2 stands for column mapping even where the writer list does not show it.
    min_reader = 3 if readers - {"columnMapping"} else (2 if "columnMapping" in readers else protocol.min_reader)
    if protocol.min_reader >= 3:
        min_reader, readers = 3, readers | set(protocol.reader_features or ())
    writers = both | readers
    return Protocol(min_reader, 7, frozenset(readers) if min_reader >= 3 else None, frozenset(writers))
