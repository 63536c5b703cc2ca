"""A server that refuses, is not there, or has no such bucket: typed errors that show no secret."""

from __future__ import annotations

import os
import socket
import time
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.base.errors import CorruptionError, NotFoundError, StorageError
from headwater.lakehouse import Lake
from headwater.testing.object_server import ObjectServer
from headwater.testing.s3_server import S3Server

ROWS = [{"id": 1}, {"id": 2}]
CALLS: list[Callable[[Lake], Any]] = [
    lambda lake: lake.tables(),
    lambda lake: lake.write("t", ROWS),
    lambda lake: lake.table("t").to_arrow(),
    lambda lake: lake.drop("t"),
]


def refused(lake: Lake, secret: str, code: str) -> None:
    for call in CALLS:
        with pytest.raises(StorageError) as caught:
            call(lake)
        error = caught.value
        assert error.code == code and error.hint
        shown = f"{error} {error!r} {error.as_dict()} {lake!r} {lake.catalog.root!r}"
        assert secret not in shown
        assert len(error.message) < 200


def test_a_wrong_secret(server: ObjectServer) -> None:
    refused(hw.connect(server.url(), storage_options=server.with_secret("no-such-secret")), "no-such-secret", "E6001")


def test_an_unknown_key(s3: S3Server) -> None:
    options = {**s3.options, "AWS_ACCESS_KEY_ID": "nobody"}
    refused(hw.connect(s3.url(), storage_options=options), s3.secret, "E6001")


def test_a_bucket_that_is_not_there(server: ObjectServer) -> None:
    lake = hw.connect(f"{server.scheme}://nowhere/lake", storage_options=server.options)
    with pytest.raises(StorageError) as caught:
        lake.tables()
    assert caught.value.code == "E6006"
    with pytest.raises(StorageError):
        lake.table("t").to_arrow()


def test_an_endpoint_that_is_not_there(server: ObjectServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{free.getsockname()[1]}"
    lake = hw.connect(server.url(), storage_options=server.with_endpoint(endpoint))
    began = time.monotonic()
    with pytest.raises(StorageError) as caught:
        lake.table("t").to_arrow()
    assert caught.value.code == "E6003" and endpoint in caught.value.message
    assert server.secret not in str(caught.value)
    assert time.monotonic() - began < 30


def test_a_data_file_that_is_missing_or_damaged(lake: Lake) -> None:
    t = lake.write("t", ROWS)
    (path,) = t.snapshot.files
    whole = t.storage.get(path)
    t.storage.put(path, whole[:-7])
    with pytest.raises(CorruptionError) as damaged:
        t.to_arrow()
    assert damaged.value.code == "E5004"
    t.storage.delete(path)
    with pytest.raises(NotFoundError) as missing:
        t.to_arrow()
    assert missing.value.code == "E1105"
    t.storage.put(path, whole)
    assert t.count() == pq.read_table(t.storage.open_input(path)).num_rows == 2


def test_a_vector_file_that_ends_early(lake: Lake) -> None:
    from headwater.base import settings

    t = lake.write("t", [{"id": n} for n in range(50)])
    with settings.override(small_vector_bytes=0):
        t.delete("id % 2 = 0")
    (path,) = [e.path for e in t.storage.list() if e.path.endswith(".bin")]
    t.storage.put(path, t.storage.get(path)[:-5])
    with pytest.raises(CorruptionError) as caught:
        t.to_arrow()
    assert caught.value.code == "E5005"


def test_one_place_on_two_servers_is_two_lakes(server: ObjectServer, lake: Lake) -> None:
    """What is held in memory belongs to a place and to how it was reached."""
    lake.write("t", ROWS)
    assert lake.table("t").count() == 2
    with pytest.raises(StorageError):
        hw.connect(lake.location, storage_options=server.with_secret("a-wrong-one")).table("t").count()


def test_a_forked_process_is_refused_and_does_not_hang(lake: Lake) -> None:
    lake.write("t", ROWS)
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # to fork beside threads is what is tested
        child = os.fork()
    if child == 0:
        try:
            lake.table("t").count()
        except hw.HeadwaterError as e:
            os.write(writer, e.code.encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as said:
        assert said.read() == b"E3003"
    os.waitpid(child, 0)
