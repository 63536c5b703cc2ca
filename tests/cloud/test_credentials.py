"""Every way to give credentials, and that nothing shows them: messages, causes, tracebacks, reprs."""

from __future__ import annotations

import json
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.base.errors import HeadwaterError, StorageError
from headwater.base.storage import Storage, open_storage
from headwater.testing.azure_server import AzureServer
from headwater.testing.gcs_server import GcsServer

CALLS: list[Callable[[Storage], Any]] = [
    lambda s: s.get("x"),
    lambda s: s.put("x", b""),
    lambda s: s.put_if_absent("x", b""),
    lambda s: list(s.list()),
    lambda s: s.folders(),
    lambda s: s.head("x"),
]


def works(storage: Storage) -> None:
    storage.put_if_absent("x", b"here")
    assert pickle.loads(pickle.dumps(storage)).get("x") == b"here"
    storage.delete("x")


def shown(error: BaseException) -> str:
    told = error.as_dict() if isinstance(error, HeadwaterError) else ""
    return f"{error} {error!r} {told} {''.join(traceback.format_exception(error))}"


def azure_ways(azure: AzureServer) -> dict[str, dict[str, str]]:
    endpoint = f"{azure.endpoint}/{azure.account}"
    return {
        "adlfs": {"account_name": azure.account, "account_key": azure.secret, "endpoint": endpoint},
        "delta-rs": dict(azure.options),
        "lower case": {name.lower(): value for name, value in azure.options.items()},
        "sas": {"account_name": azure.account, "sas_token": azure.signature(), "endpoint": endpoint},
        "sas of the portal": {
            "account_name": azure.account,
            "sas_token": f"?{azure.signature()}",
            "endpoint": endpoint,
        },
        "connection string": {
            "connection_string": f"AccountName={azure.account};AccountKey={azure.secret};BlobEndpoint={endpoint};"
        },
        "string with a signature": {
            "AZURE_STORAGE_CONNECTION_STRING": f"BlobEndpoint={endpoint};SharedAccessSignature={azure.signature()}",
            "account_name": azure.account,
        },
    }


def test_ways_to_azure(azure: AzureServer) -> None:
    for options in azure_ways(azure).values():
        works(open_storage(azure.url("ways"), options))
        prefix = azure.url("ways").removeprefix("az://").partition("/")[2]
        works(open_storage(f"abfss://{azure.bucket}@{azure.account}.dfs.core.windows.net/{prefix}", options))


def test_azure_by_the_environment(azure: AzureServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in azure.options.items():
        monkeypatch.setenv(name if name.isupper() else f"AZURE_{name.upper()}", value)
    works(open_storage(azure.url("environment")))
    # What is given as an option counts, though the environment has another kind of credential.
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmcgd3Jvbmcgd3Jvbmcgd3Jvbmc=")
    with pytest.raises(StorageError):
        open_storage(azure.url("environment"), {"allow_http": "true"}).put("x", b"")
    works(open_storage(azure.url("environment"), {"sas_token": azure.signature()}))


def test_a_signature_is_never_shown(azure: AzureServer) -> None:
    """It is part of each request's URL, which the client quotes when it fails."""
    endpoint = f"{azure.endpoint}/{azure.account}"
    for token in (azure.signature("r"), azure.signature(hours=-1)):
        signature = token.rpartition("sig=")[2]
        options = {"account_name": azure.account, "sas_token": token, "endpoint": endpoint}
        storage = open_storage(azure.url("signed"), options)
        failed = 0
        for call in CALLS:
            try:
                call(storage)
            except (StorageError, hw.NotFoundError) as e:
                failed += 1
                assert signature not in shown(e) and token not in shown(e) and signature not in repr(storage)
        assert failed >= 4
    with pytest.raises(StorageError) as caught:
        open_storage(f"az://lake/x?{azure.signature()}")
    assert caught.value.code == "E6009" and "sig=" not in shown(caught.value).partition("Traceback")[0]


def test_an_endpoint_without_an_answer_shows_no_signature(azure: AzureServer) -> None:
    token = azure.signature()
    options = {"account_name": azure.account, "sas_token": token, "endpoint": "http://127.0.0.1:9/acme"}
    with pytest.raises(StorageError) as caught:
        open_storage("az://lake/x", options).get("a")
    assert caught.value.code == "E6003" and token.rpartition("sig=")[2] not in shown(caught.value)


def test_ways_to_google(gcs: GcsServer, tmp_path: Path) -> None:
    path = gcs.options["GOOGLE_SERVICE_ACCOUNT"]
    key = Path(path).read_text()
    bare = {name: value for name, value in json.loads(key).items() if name != "gcs_base_url"}
    (tmp_path / "bare.json").write_text(json.dumps(bare))
    at = {"endpoint": gcs.endpoint}
    for options in (
        {"GOOGLE_SERVICE_ACCOUNT": path},
        {"service_account_path": path},
        {"google_application_credentials": path},
        {"GOOGLE_SERVICE_ACCOUNT_KEY": key},
        {"token": path},
        {"application_credentials": str(tmp_path / "bare.json"), **at},
        {"service_account": str(tmp_path / "bare.json"), "GOOGLE_BASE_URL": gcs.endpoint},
    ):
        works(open_storage(gcs.url("ways"), options))
    anonymous = open_storage(gcs.url("ways"), {"token": "anon", **at})
    with pytest.raises(StorageError) as caught:
        anonymous.put("x", b"")
    assert caught.value.code == "E6001", "the bucket is not public, and nothing was asked of a metadata server"


def test_google_by_the_environment(gcs: GcsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", gcs.options["GOOGLE_SERVICE_ACCOUNT"])
    works(open_storage(gcs.url("environment")))


def test_a_key_file_travels_to_other_machines(gcs: GcsServer, tmp_path: Path) -> None:
    copy = tmp_path / "key.json"
    copy.write_text(Path(gcs.options["GOOGLE_SERVICE_ACCOUNT"]).read_text())
    storage = open_storage(gcs.url("travels"), {"GOOGLE_APPLICATION_CREDENTIALS": str(copy)})
    storage.put("x", b"here")
    sent = pickle.dumps(storage)
    copy.unlink()
    assert pickle.loads(sent).get("x") == b"here"
    assert gcs.secret not in repr(pickle.loads(sent))


def test_the_project_pays(gcs: GcsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "of-other-tools")
    del gcs.gate.headers[:]
    open_storage(gcs.url("project"), {**gcs.options, "project": "acme-billing"}).put("x", b"")
    open_storage(gcs.url("project"), gcs.options).put("x", b"")
    assert [h.get("x-goog-user-project") for h in gcs.gate.headers] == ["acme-billing", None]


def test_keys_of_google_are_never_shown(gcs: GcsServer) -> None:
    key = Path(gcs.options["GOOGLE_SERVICE_ACCOUNT"]).read_text()
    damaged = key.replace(gcs.secret, gcs.secret[:-4])
    for options in ({"GOOGLE_SERVICE_ACCOUNT_KEY": damaged}, gcs.with_secret("nobody")):
        for call in CALLS:
            with pytest.raises((StorageError, hw.InputError)) as caught:
                call(open_storage(gcs.url("shown"), options))
            assert gcs.secret[:40] not in shown(caught.value)
