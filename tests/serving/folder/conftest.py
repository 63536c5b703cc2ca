"""Date folders to publish from, on the disk and on a real S3 server."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headwater.base.storage import LocalStorage, Storage, open_storage
from headwater.serving.config import ColumnConfig, LocalSource, S3Source, SourceConfig, TableConfig
from headwater.serving.folder import FolderPublisher
from headwater.testing.s3_server import S3Server


class Folders:
    """Date folders of one source, and the tables that are served of them."""

    def __init__(self, root: Storage, source: SourceConfig, data: Path) -> None:
        self.root, self.source, self.data = root, source, LocalStorage(data)
        self.now = 0.0

    def write(self, folder: str, rows: Any = (), *, name: str = "part-0.parquet", done: bool = True) -> None:
        """Write a Parquet file to a folder, and then ``_SUCCESS``."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows) or [{"id": 1, "v": 1.5}])
        sink = io.BytesIO()
        pq.write_table(table, sink)
        self.put(f"{folder}/{name}", sink.getvalue())
        if done:
            self.put(f"{folder}/_SUCCESS")

    def put(self, path: str, data: bytes = b"") -> None:
        self.root.put(path, data)

    def remove(self, folder: str) -> None:
        for entry in list(self.root.list(folder)):
            self.root.delete(entry.path)
        self.root.remove_folder(folder)

    def publisher(self, name: str = "features", **options: Any) -> FolderPublisher:
        columns = {
            column: ColumnConfig(dtype=given)
            if isinstance(given, str)
            else ColumnConfig(dtype=given[0], nullable=given[1])
            for column, given in options.pop("columns", {}).items()
        }
        given = {"key": ["id"], "parts": 1, "poll_interval": timedelta(seconds=10), **options}
        table = TableConfig(source=self.source, columns=columns, **given)
        return FolderPublisher(name, table, self.data, clock=lambda: self.now)


def served(publisher: FolderPublisher) -> list[dict[str, Any]]:
    """The rows that a reader finds, in order of the key."""
    version = publisher.commits.store.newest()
    if version is None:
        return []
    return sorted(version.read().read_all().to_pylist(), key=lambda row: tuple(row[k] for k in version.key))


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    (tmp_path / "in").mkdir()
    source = SourceConfig(local=LocalSource(path=tmp_path / "in"))
    return Folders(open_storage(tmp_path / "in"), source, tmp_path / "data")


@pytest.fixture
def s3_folders(s3: S3Server, tmp_path: Path) -> Folders:
    url = s3.url("features")
    source = S3Source.model_validate(
        {
            "bucket": s3.bucket,
            "prefix": url.removeprefix(f"s3://{s3.bucket}/"),
            "endpoint": s3.endpoint,
            "region": "us-east-1",
            "access_key_id": s3.options["AWS_ACCESS_KEY_ID"],
            "secret_access_key": s3.options["AWS_SECRET_ACCESS_KEY"],
        },
        strict=False,
    )
    return Folders(open_storage(url, s3.options), SourceConfig(s3=source), tmp_path / "data")
