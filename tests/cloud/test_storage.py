"""The verbs of storage on emulators of Azure and Google Cloud, compared with a dict, and put-if-absent in a race."""

from __future__ import annotations

import pickle
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from headwater.base.errors import NotFoundError, StorageError
from headwater.base.storage import ObjectExistsError, open_storage
from headwater.testing.gcs_server import GcsServer
from headwater.testing.object_server import ObjectServer

NAMES = ["a", "b c", "ü", "p=1%3A2", "x:y", "_log", ".hidden", "ten'th", "a+b", "100%"]


@pytest.mark.parametrize("seed", range(4))
def test_a_random_history_is_that_of_a_dict(cloud: ObjectServer, seed: int) -> None:
    rng, model = random.Random(seed), dict[str, bytes]()
    storage = open_storage(cloud.url("history"), cloud.options)
    for _ in range(40):
        path = "/".join(rng.choices(NAMES, k=rng.randint(1, 3))) + f"-{rng.randint(0, 2)}"
        data = rng.randbytes(rng.choice([0, 1, 1000]))
        match rng.choice(["put", "absent", "output", "delete", "get"]):
            case "put":
                storage.put(path, data)
                model[path] = data
            case "absent" if path in model:
                with pytest.raises(ObjectExistsError):
                    storage.put_if_absent(path, data)
            case "absent":
                storage.put_if_absent(path, data)
                model[path] = data
            case "output":
                with storage.open_output(path) as file:
                    file.write(data)
                model[path] = data
            case "delete":
                storage.delete(path)
                model.pop(path, None)
            case _ if path in model:
                assert storage.get(path) == model[path]
            case _:
                with pytest.raises(NotFoundError):
                    storage.get(path)
    listed = {e.path: e for e in storage.list()}
    assert list(listed) == sorted(model)
    for path, data in model.items():
        assert storage.get(path) == data and listed[path].size == len(data)
        assert storage.head(path) == listed[path], "a listing and a question about one object say the same"
    some = rng.choice(sorted(model))
    assert [e.path for e in storage.list(after=some)] == [p for p in sorted(model) if p > some]
    assert storage.folders() == sorted({p.partition("/")[0] for p in model if "/" in p})
    again = pickle.loads(pickle.dumps(storage))
    assert again.get(some) == model[some] and cloud.secret not in repr(again)


def test_one_of_sixteen_threads_wins(cloud: ObjectServer) -> None:
    storage = open_storage(cloud.url("race"), cloud.options)
    for trial in range(5):
        together = threading.Barrier(16)

        def put(n: int, path: str = f"race/{trial}", start: threading.Barrier = together) -> bool:
            start.wait()
            try:
                storage.put_if_absent(path, str(n).encode())
            except ObjectExistsError:
                return False
            return True

        with ThreadPoolExecutor(16) as pool:
            won = list(pool.map(put, range(16)))
        assert sum(won) == 1
        assert storage.get(f"race/{trial}") == str(won.index(True)).encode()
    assert all(e.path.startswith("race/") and "." not in e.path for e in storage.list()), "what was asked with is gone"


def test_a_large_object_is_uploaded_in_parts(cloud: ObjectServer) -> None:
    storage = open_storage(cloud.url("large"), cloud.options)
    parts = [bytes([n]) * 1_000_003 for n in range(25)]
    with storage.open_output("deep/large") as file:
        for part in parts:
            file.write(part)
    whole = b"".join(parts)
    with storage.open_input("deep/large") as back:
        assert back.read() == whole
        back.seek(1_000_000)
        assert back.read(10) == whole[1_000_000:1_000_010]
    assert storage.get_range("deep/large", 999_999, 7) == whole[999_999:1_000_006]


def test_an_upload_that_fails_leaves_nothing(cloud: ObjectServer) -> None:
    storage = open_storage(cloud.url("broken"), cloud.options)

    def upload() -> None:
        with storage.open_output("x") as file:
            file.write(b"x" * 20_000_000)
            raise ValueError("no more rows")

    with pytest.raises(ValueError, match="no more rows"):
        upload()
    assert list(storage.list()) == []


def test_a_service_that_ignores_the_condition_is_refused(gcs: GcsServer) -> None:
    """It takes the put and overwrites: whoever commits there would lose commits, so nothing is put at all."""
    options = {**gcs.options, "project": "another-client"}  # which has not asked yet
    storage = open_storage(gcs.url("careless"), options)
    gcs.gate.ignores_conditions = True
    try:
        for _ in range(2):
            with pytest.raises(StorageError) as caught:
                storage.put_if_absent("_delta_log/0.json", b"first")
            assert caught.value.code == "E6013" and "condition" in str(caught.value)
        assert list(storage.list()) == []
    finally:
        gcs.gate.ignores_conditions = False
    storage.put_if_absent("_delta_log/0.json", b"first")
    with pytest.raises(ObjectExistsError):
        storage.put_if_absent("_delta_log/0.json", b"second")
    assert storage.get("_delta_log/0.json") == b"first"
