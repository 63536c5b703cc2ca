"""Names that are wrong: of lakes, tables, columns, properties and options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.lakehouse import Lake

Attempt = Callable[[], Any]
ROWS = [{"id": 1, "amount": 10.0}, {"id": 2, "amount": 20.0}]


def case_missing_table_with_a_near_name(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.table("oders").to_arrow()


def case_missing_table_of_an_empty_lake(lake: Lake) -> Attempt:
    return lambda: lake.table("orders").append(ROWS)


def case_drop_of_a_missing_table(lake: Lake) -> Attempt:
    return lambda: lake.drop("orders")


def case_detach_of_a_table_that_is_not_attached(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.detach("orders")


def case_attach_of_a_folder_that_is_not_there(lake: Lake) -> Attempt:
    return lambda: lake.attach("orders", f"{lake.location}/../nowhere")


def case_attach_of_a_folder_without_a_table(lake: Lake) -> Attempt:
    folder = Path(lake.location).parent / "papers"
    folder.mkdir()
    (folder / "notes.txt").write_text("no table")
    return lambda: lake.attach("papers", str(folder))


def case_attach_under_a_name_that_is_taken(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    lake.write("cards", ROWS)
    return lambda: lake.attach("orders", lake.table("cards").location)


def case_damaged_attachment(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    lake.attach("copy", lake.table("orders").location)
    (Path(lake.location) / "_headwater/attached/copy.json").write_text("{")
    return lambda: lake.table("copy")


def case_connect_to_a_file(lake: Lake) -> Attempt:
    file = Path(lake.location).parent / "file"
    file.write_text("")
    return lambda: hw.connect(file)


def case_connect_to_an_unknown_scheme(lake: Lake) -> Attempt:
    return lambda: hw.connect("ftp://host/lake")


def case_connect_without_a_bucket(lake: Lake) -> Attempt:
    return lambda: hw.connect("s3:///lake")


def case_connect_to_hdfs(lake: Lake) -> Attempt:
    return lambda: hw.connect("hdfs://namenode:8020/lake")


def case_connect_with_a_signature_in_the_url(lake: Lake) -> Attempt:
    return lambda: hw.connect("az://container/lake?sv=2024&sig=hidden")


def case_connect_to_a_host_that_is_no_account(lake: Lake) -> Attempt:
    return lambda: hw.connect("abfss://container@example.com/lake")


def case_connect_to_azure_without_credentials(lake: Lake) -> Attempt:
    return lambda: hw.connect("az://container/lake", storage_options={"account_name": ""})


def case_connect_to_azure_with_a_damaged_key(lake: Lake) -> Attempt:
    return lambda: hw.connect("az://container/lake", storage_options={"account_name": "acme", "account_key": "a b"})


def case_connect_to_google_without_the_key_file(lake: Lake) -> Attempt:
    return lambda: hw.connect("gs://bucket/lake", storage_options={"GOOGLE_APPLICATION_CREDENTIALS": "/none/key.json"})


def case_unknown_azure_option(lake: Lake) -> Attempt:
    return lambda: hw.connect("az://container/lake", storage_options={"acount_key": "hidden"})


def case_unknown_storage_option(lake: Lake) -> Attempt:
    return lambda: hw.connect("s3://bucket/lake", storage_options={"AWS_SECRET_ACESS_KEY": "hidden"})


def case_bad_table_name(lake: Lake) -> Attempt:
    return lambda: lake.table("../orders")


def case_table_inside_a_table(lake: Lake) -> Attempt:
    lake.write("sales", ROWS)
    return lambda: lake.write("sales.orders", ROWS)


def case_table_around_a_table(lake: Lake) -> Attempt:
    lake.write("sales.orders", ROWS)
    return lambda: lake.write("sales", ROWS)


def case_create_a_table_that_exists(lake: Lake) -> Attempt:
    lake.write("orders", ROWS)
    return lambda: lake.table("orders").create({"id": pa.int64()})


def case_write_in_an_unknown_mode(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", ROWS, mode="replace")  # type: ignore[arg-type]


def case_wrong_column_in_a_selection(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.to_arrow(["id", "amout"])


def case_wrong_column_in_a_condition(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.to_arrow(where="amout > 3")


def case_wrong_column_in_an_update(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({"amout": "1"})


def case_wrong_column_in_the_value_of_an_update(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.update({"amount": "amout + 1"})


def case_wrong_column_in_a_merge(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge(ROWS, on="t.id = s.idd").when_matched_update_all().execute()


def case_wrong_key_column_in_a_merge(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.merge(ROWS, on=["key"]).when_matched_update_all().execute()


def case_wrong_column_in_the_changes(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.changes(after=-1, columns=["amout"])


def case_wrong_partition_column(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", ROWS, partition_by=["country"])


def case_wrong_zorder_column(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.optimize(zorder_by=["amout"])


def case_zorder_by_a_partition_column(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS, partition_by=["id"])
    return lambda: t.optimize(zorder_by=["id"])


def case_other_partitioning_than_the_table_has(lake: Lake) -> Attempt:
    lake.write("orders", ROWS, partition_by=["id"])
    return lambda: lake.write("orders", ROWS, partition_by=["amount"])


def case_column_names_that_differ_in_case_only(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", pa.table({"id": [1], "ID": [2]}))


def case_bad_column_name(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", [{"order id": 1}])


def case_empty_schema(lake: Lake) -> Attempt:
    return lambda: lake.table("orders").create(pa.schema([]))


def case_partition_by_every_column(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", ROWS, partition_by=["id", "amount"])


def case_partition_by_a_list(lake: Lake) -> Attempt:
    return lambda: lake.write("orders", [{"id": 1, "tags": ["a"]}], partition_by=["tags"])


def case_bad_property(lake: Lake) -> Attempt:
    return lambda: lake.table("orders").create({"id": pa.int64()}, properties={"delta.appendOnly": "maybe"})


def case_unknown_property(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.set_properties({"delta.checkpointIntervall": "5"})


def case_property_that_is_not_text(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.set_properties({"delta.appendOnly": True})  # type: ignore[dict-item]


def case_drop_of_a_missing_constraint(lake: Lake) -> Attempt:
    t = lake.table("orders").create({"id": pa.int64()}, constraints={"positive": "id > 0"})
    return lambda: t.drop_constraint("positiv")


def case_constraint_on_a_missing_column(lake: Lake) -> Attempt:
    return lambda: lake.table("orders").create({"id": pa.int64()}, constraints={"positive": "idd > 0"})


def case_rename_without_column_mapping(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.rename_column("amount", "total")


def case_drop_of_a_column_without_column_mapping(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.drop_column("amount")


def case_rename_to_a_name_that_is_taken(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS, properties={"delta.columnMapping.mode": "name"})
    return lambda: t.rename_column("amount", "ID")


def case_add_a_column_that_is_there(lake: Lake) -> Attempt:
    t = lake.write("orders", ROWS)
    return lambda: t.add_columns({"Amount": pa.int64()})


CASES = [f for name, f in list(globals().items()) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.__name__.removeprefix("case_"))
def test_refused(case: Any, catalogue: Any) -> None:
    error = catalogue.check(case)
    assert "hidden" not in f"{error!r} {error}", "no secret is shown"
