"""Storage options: names of obstore, delta-rs and fsspec, read strictly, and credentials that cannot be used."""

from __future__ import annotations

import json
import os
import pickle
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from headwater.base.errors import HeadwaterError, InputError, StorageError
from headwater.base.storage import open_storage
from headwater.base.storage.address import parse_address
from headwater.base.storage.azure import AzureStorage
from headwater.base.storage.gcs import GoogleStorage
from headwater.base.storage.options import AZURE_OPTIONS, GCS_OPTIONS, S3_OPTIONS
from headwater.base.storage.s3 import S3Storage

ALL = (S3_OPTIONS, AZURE_OPTIONS, GCS_OPTIONS)
PLACES = {"S3": "s3://b/x", "Azure": "az://c/x", "Google Cloud": "gs://b/x"}


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.upper().startswith(("AWS_", "AZURE_", "GOOGLE_")):
            monkeypatch.delenv(name)


def test_hints_name_options_that_are_understood() -> None:
    for names in ALL:
        assert all(name.lower() in names.names for name in names.shown)
        assert names.secret <= set(names.names.values())


@pytest.mark.parametrize("names", ALL, ids=lambda n: n.service)
def test_a_name_that_is_nearly_right(names: object) -> None:
    assert isinstance(names, type(S3_OPTIONS))
    for shown in names.shown:
        wrong = shown[:4] + shown[5:]
        if wrong.lower() in names.names:
            continue
        with pytest.raises(InputError) as caught:
            open_storage(PLACES[names.service], {wrong: "secret77"})
        assert caught.value.code == "E1019" and "did you mean" in str(caught.value.hint)
        assert "secret77" not in str(caught.value)


def test_options_of_other_services() -> None:
    """Long names pass, since one set of options may serve several services; a short one is a mistake."""
    options = {"AWS_SESSION_TOKEN": "t", "GOOGLE_APPLICATION_CREDENTIALS": "/none.json"}
    open_storage("az://c/x", {"account_name": "acme", "account_key": "YQ==", **options})
    with pytest.raises(InputError):
        open_storage("s3://b/x", {"account_name": "acme"})
    with pytest.raises(InputError) as caught:
        open_storage("s3://b/x", {"AWS_REGION": 5})  # type: ignore[dict-item]
    assert caught.value.code == "E1001"


def test_what_reaches_the_client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    s3 = S3Storage.connection(
        parse_address("s3://b"), {"AWS_SESSION_TOKEN": "session77", "endpoint_url": "http://127.0.0.1:1"}
    )
    assert s3.config["session_token"] == "session77" and s3.http == {"allow_http": True}
    assert "session77" not in s3.hide_secrets("token=session77 was refused")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "other")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "YQ==")
    address = parse_address("abfss://c@acme.dfs.core.windows.net/x")
    azure = AzureStorage.connection(address, {"SAS_TOKEN": "?sig=signature"})
    assert azure.config["account_name"] == "acme" and azure.config["credential_type"] == "sas_token"
    assert azure.config["sas_key"] == "sig=signature" and azure.http == {}
    key = {"type": "service_account", "private_key": "-----BEGIN\nline-of-a-key\n", "client_email": "a@b"}
    (tmp_path / "key.json").write_text(json.dumps(key))
    google = GoogleStorage.connection(
        parse_address("gs://b"), {"GOOGLE_APPLICATION_CREDENTIALS": str(tmp_path / "key.json"), "project": "acme"}
    )
    assert json.loads(google.config["service_account_key"]) == key
    assert google.http == {"default_headers": {"x-goog-user-project": "acme"}}
    assert google.hide_secrets("it is line-of-a-key") == "it is …"


@pytest.mark.parametrize(
    ("url", "options", "code", "said"),
    [
        ("az://c/x", {}, "E6011", "AZURE_STORAGE_ACCOUNT_KEY"),
        ("az://c/x", {"account_name": "acme", "account_key": "secret 77"}, "E1027", "Invalid Access Key"),
        ("az://c/x", {"connection_string": "secret77"}, "E1001", "AccountName=…"),
        ("abfss://c@acme.dfs.core.windows.net/x", {"account_name": "other"}, "E1001", "`acme`"),
        ("gs://b/x", {"GOOGLE_APPLICATION_CREDENTIALS": "/none/key.json"}, "E6012", "No such file"),
        ("gs://b/x", {"service_account_key": "secret77"}, "E6012", "it is not the JSON of a key"),
        ("gs://b/x", {"token": "secret77"}, "E1001", "bearer_token"),
        ("gs://b/x", {"service_account_key": '{"type": "service_account"}'}, "E1027", "Google Cloud"),
    ],
)
def test_credentials_that_cannot_be_used(url: str, options: dict[str, str], code: str, said: str) -> None:
    with pytest.raises((InputError, StorageError)) as caught:
        open_storage(url, options)
    error = caught.value
    assert isinstance(error, HeadwaterError) and error.code == code and error.hint and said in str(error)
    assert "secret" not in str(error).replace("service_account_key", "")


def test_a_file_that_holds_no_key(tmp_path: Path) -> None:
    (tmp_path / "key.json").write_bytes(b"\xff\xfe")
    with pytest.raises(StorageError) as caught:
        open_storage("gs://b/x", {"GOOGLE_SERVICE_ACCOUNT": str(tmp_path / "key.json")})
    assert caught.value.code == "E6012"


def test_a_session_token_is_sent_with_each_request() -> None:
    """Temporary credentials of S3 have three parts, of which the third is a header."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("x-amz-security-token"))
            self.send_response(403)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        options = {
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "secretWQX",
            "AWS_SESSION_TOKEN": "sessionWQX",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
        }
        storage = pickle.loads(pickle.dumps(open_storage("s3://b/x", options)))
        with pytest.raises(StorageError) as caught:
            storage.get("a")
        server.shutdown()
    assert seen == ["sessionWQX"] and caught.value.code == "E6001"
    # Letters: ports and times in the message have any digits.
    assert "WQX" not in f"{caught.value} {caught.value.__cause__} {storage!r}"
