"""URLs of object stores: every spelling leads to one place, secrets are refused, and errors say what can be opened."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.base.errors import StorageError
from headwater.base.storage import LocalStorage, open_storage, path_below
from headwater.base.storage.address import SCHEMES, parse_address

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=3, max_size=10).map(lambda s: f"b{s}")
KEYS = st.lists(st.text("abc =%ü:.+?#", min_size=1, max_size=6), min_size=0, max_size=3).map("/".join)
ACCOUNT = "acme.dfs.core.windows.net"


@given(st.sampled_from(sorted(SCHEMES)), NAMES, KEYS)
def test_a_place_is_the_same_when_it_is_read_again(scheme: str, bucket: str, key: str) -> None:
    found = parse_address(f"{scheme}://{bucket}/{key}")
    assert (found.service, found.bucket, found.prefix) == (SCHEMES[scheme], bucket, key.strip("/"))
    assert parse_address(found.url) == found


@pytest.mark.parametrize("scheme", ["abfs", "abfss", "az", "azure"])
@pytest.mark.parametrize("host", ["acme.dfs.core.windows.net", "acme.blob.core.windows.net"])
def test_an_account_in_the_url(scheme: str, host: str) -> None:
    found = parse_address(f"{scheme}://c@{host}/a/b/")
    assert (found.account, found.url, found.endpoint) == ("acme", f"abfss://c@{ACCOUNT}/a/b", None)
    government = parse_address("abfss://c@acme.dfs.core.usgovcloudapi.net/a")
    assert government.endpoint == "https://acme.blob.core.usgovcloudapi.net"
    assert not government.shares_bucket(parse_address("abfss://c@other.dfs.core.windows.net/a"))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("s3://key:secret77@bucket/x", "E6009"),
        ("gs://user@bucket/x", "E6009"),
        ("az://c/x?sv=1&sig=secret77", "E6009"),
        ("abfss://c@evil.example.com/x", "E6010"),
        ("abfss://c@acme.dfs.core.windows.net.evil.com/x", "E6010"),
        ("az:///x", "E6004"),
        ("hdfs://user:secret77@namenode/x", "E6004"),
    ],
)
def test_refused_without_showing_a_secret(url: str, code: str) -> None:
    with pytest.raises(StorageError) as caught:
        open_storage(url, {"account_name": "acme", "account_key": "YQ=="})
    assert caught.value.code == code and caught.value.hint
    assert "secret77" not in f"{caught.value} {caught.value.as_dict()}"


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("hdfs://namenode:8020/lake", "hadoop distcp"),
        ("hdfs:/lake", "lake.write(name, frame)"),
        ("wasbs://c@acme.blob.core.windows.net/x", "abfss://container@account.dfs.core.windows.net/prefix"),
        ("https://acme.blob.core.windows.net/c/a/b", "use abfss://c@acme.dfs.core.windows.net/a/b"),
        ("https://storage.googleapis.com/bucket/a", "use gs://bucket/a"),
        ("dbfs:/mnt/lake", "what it is mounted from"),
        ("gss://bucket/x", "did you mean gs://"),
        ("ftp://host/x", "az://container/prefix"),
    ],
)
def test_what_cannot_be_opened_says_what_can(url: str, hint: str) -> None:
    with pytest.raises(StorageError) as caught:
        open_storage(url)
    assert caught.value.code == "E6004" and hint in str(caught.value.hint)


def test_paths_below_a_storage_in_any_spelling() -> None:
    options = {"account_name": "acme", "account_key": "YQ=="}
    azure = open_storage("az://c/lake/t", options)
    assert path_below(azure, f"abfss://c@{ACCOUNT}/lake/t/p=1/a?b.parquet") == "p=1/a?b.parquet"
    assert path_below(azure, "azure://c/lake/t/a") == "a"
    assert path_below(azure, "az://c/lake/t2/a") is None
    assert path_below(azure, "abfss://c@evil.com/lake/t/a") is None
    named = open_storage(f"abfss://c@{ACCOUNT}/lake/t", options)
    assert path_below(named, "az://c/lake/t/a") == "a"
    assert path_below(named, "abfss://c@other.dfs.core.windows.net/lake/t/a") is None
    bucket = open_storage("s3://b")
    assert path_below(bucket, "s3a://b/x/y") == "x/y" and path_below(bucket, "gs://b/x/y") is None
    disk = LocalStorage("/data/t")
    assert path_below(disk, "file:/data/t/a") == path_below(disk, "/data/t/a") == "a"
    assert path_below(disk, "/data/t2/a") is None


def test_a_key_may_hold_any_character() -> None:
    storage = open_storage("gs://b/x", {"token": "anon"}).child("a?b#c")
    assert storage.url == "gs://b/x/a?b#c" and storage.child("d").url == "gs://b/x/a?b#c/d"
