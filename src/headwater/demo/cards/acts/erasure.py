"""Act seven: a customer asks to be forgotten, and a search of every byte proves it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.demo.act import Act, Grid
from headwater.demo.cards.stage import Stage

__all__ = ["forget"]


def forget(stage: Stage) -> Act:
    """Erase a customer from four tables and everything derived from them, with their past."""
    lake = stage.lake
    customer = stage.world.corrected["customer_id"]
    key = f"customer_id={customer}"
    email = stage.world.customers.slice(customer, 1)["email"][0].as_py()
    held = _files_with(stage, email)
    found_before = lake.sql("SELECT count(*) FROM cases WHERE email = :email", parameters={"email": email}).scalar()
    certificate = lake.forget(
        "customers", key, also=dict.fromkeys(("transactions", "chargebacks", "support_notes"), key)
    )
    answered = lake.online("customer_online").fetch([customer])
    rows = [(one.name, one.rows, one.files) for one in certificate.roots]
    return Act(
        "A customer is forgotten, everywhere, with a certificate",
        f"headwater forget customers {key} --also transactions={key} ...",
        {
            "files that held the address": held,
            "files searched": certificate.files,
            "bytes searched": certificate.bytes,
            "places where it was found": len(certificate.hits),
            "the online table": "no such customer" if not answered.found.any() else "STILL THERE",
        },
        Grid(("table", "rows erased", "files of its past deleted"), rows),
        check="no byte below the lake holds the address any more, and nothing answers for the customer",
        holds=certificate.complete
        and held > 0
        and found_before > 0
        and _files_with(stage, email) == 0
        and not answered.found.any()
        and all(erased > 0 for _, erased, _ in rows),
    )


def _files_with(stage: Stage, text: str) -> int:
    """How many files hold a text: a search that shares nothing with the command's."""
    return sum(_holds(path, text) for path in (stage.folder / "lake").rglob("*") if path.is_file())


def _holds(path: Path, text: str) -> bool:
    if path.suffix != ".parquet":
        return text.encode() in path.read_bytes()
    strings = [c for c in pq.read_table(path).columns if pa.types.is_string(c.type) or pa.types.is_large_string(c.type)]
    return any(pc.any(pc.match_substring(column, text)).as_py() for column in strings)
