"""The S3 server of the tests keeps the promises a lake needs, and never outlives its owner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.waiting import listens, wait_until

from headwater.base.storage import ObjectExistsError, open_storage
from headwater.testing.s3_server import S3Server


def test_one_of_many_creators_wins(s3: S3Server) -> None:
    storage = open_storage(s3.url("race"), s3.options)

    def create(writer: int) -> bool:
        try:
            storage.put_if_absent("x", b"%d" % writer)
        except ObjectExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(16)))
    assert won.count(True) == 1
    assert storage.get("x") == b"%d" % won.index(True)


def test_every_url_is_fresh(s3: S3Server) -> None:
    first, second = s3.url("a"), s3.url("a")
    assert first != second
    assert first.startswith(f"s3://{s3.bucket}/a-")


@pytest.mark.s3
def test_the_server_ends_with_its_owner() -> None:
    program = """
import sys
from headwater.testing.s3_server import serve_s3
with serve_s3() as s3:
    print(s3.endpoint.rpartition(":")[2], flush=True)
    sys.stdin.read()
"""
    owner = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert owner.stdin is not None
    assert owner.stdout is not None
    with owner.stdin, owner.stdout:
        port = int(owner.stdout.readline())
        assert listens(port)
        os.kill(owner.pid, signal.SIGKILL)
        owner.wait()
    wait_until(lambda: not listens(port), "the end of the server")
