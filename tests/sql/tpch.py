"""TPC-H's tables, tiny and the same on every machine, with the values that the 22 queries look for."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache

import pyarrow as pa

_MONEY = pa.decimal128(15, 2)
_NATIONS = ["FRANCE", "GERMANY", "BRAZIL", "CANADA", "INDIA", "CHINA", "KENYA", "IRAQ"]
_REGIONS = ["EUROPE", "AMERICA", "ASIA", "AFRICA", "MIDDLE EAST"]
_REGION_OF = [0, 0, 1, 1, 2, 2, 3, 4]


def _money(dice: random.Random, low: int, high: int) -> Decimal:
    return Decimal(dice.randrange(low * 100, high * 100)).scaleb(-2)


def _day(dice: random.Random) -> date:
    return date(1992, 1, 1) + timedelta(days=dice.randrange(2400))


def _table(rows: list[dict[str, object]], types: str) -> pa.Table:
    kinds = {"i": pa.int64(), "n": pa.int32(), "s": pa.string(), "m": _MONEY, "d": pa.date32()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in (part.split(":") for part in types.split())])
    return pa.Table.from_pylist(rows, schema=schema)


@lru_cache(maxsize=1)
def tables() -> dict[str, pa.Table]:
    """The eight tables by name."""
    dice = random.Random(7)
    pick = dice.choice
    region = [{"r_regionkey": i, "r_name": n, "r_comment": "c"} for i, n in enumerate(_REGIONS)]
    nation = [
        {"n_nationkey": i, "n_name": n, "n_regionkey": _REGION_OF[i], "n_comment": "c"} for i, n in enumerate(_NATIONS)
    ]
    supplier = [
        {
            "s_suppkey": i,
            "s_name": f"Supplier#{i:03}",
            "s_address": f"street {i}",
            "s_nationkey": i % len(_NATIONS),
            "s_phone": f"{dice.randrange(10, 35)}-555",
            "s_acctbal": _money(dice, -999, 9999),
            "s_comment": pick(["fine", "Customer sad Complaints", "slow"]),
        }
        for i in range(1, 17)
    ]
    customer = [
        {
            "c_custkey": i,
            "c_name": f"Customer#{i:03}",
            "c_address": f"road {i}",
            "c_nationkey": dice.randrange(len(_NATIONS)),
            "c_phone": f"{pick([13, 31, 23, 29, 30, 18, 17, 11])}-555",
            "c_acctbal": _money(dice, -999, 9999),
            "c_mktsegment": pick(["BUILDING", "MACHINERY"]),
            "c_comment": "c",
        }
        for i in range(1, 61)
    ]
    part = [
        {
            "p_partkey": i,
            "p_name": f"{pick(['forest', 'green', 'red'])} {pick(['green', 'blue'])}",
            "p_mfgr": f"Manufacturer#{i % 5}",
            "p_brand": pick(["Brand#12", "Brand#23", "Brand#45"]),
            "p_type": pick(["PROMO BRASS", "MEDIUM POLISHED TIN", "STANDARD BRASS", "PROMO TIN"]),
            "p_size": pick([49, 14, 23, 45, 19, 3, 36, 9, 15]),
            "p_container": pick(["SM CASE", "SM BOX", "MED BAG", "MED PKG"]),
            "p_retailprice": _money(dice, 900, 2000),
            "p_comment": "c",
        }
        for i in range(1, 31)
    ]
    partsupp = [
        {
            "ps_partkey": p,
            "ps_suppkey": (p + 5 * k) % 16 + 1,
            "ps_availqty": dice.randrange(1, 9999),
            "ps_supplycost": _money(dice, 1, 1000),
            "ps_comment": "c",
        }
        for p in range(1, 31)
        for k in range(3)
    ]
    orders, lineitem = [], []
    for o in range(1, 201):
        day = _day(dice)
        orders.append(
            {
                "o_orderkey": o,
                "o_custkey": dice.randrange(1, 45),
                "o_orderstatus": pick("FOP"),
                "o_totalprice": _money(dice, 900, 90000),
                "o_orderdate": day,
                "o_orderpriority": pick(["1-URGENT", "2-HIGH", "3-MEDIUM", "5-LOW"]),
                "o_clerk": "Clerk",
                "o_shippriority": 0,
                "o_comment": pick(["fine", "special big requests"]),
            }
        )
        for number in range(dice.randrange(1, 6)):
            supplied = pick(partsupp)
            shipped = day + timedelta(days=dice.randrange(1, 120))
            lineitem.append(
                {
                    "l_orderkey": o,
                    "l_partkey": supplied["ps_partkey"],
                    "l_suppkey": supplied["ps_suppkey"],
                    "l_linenumber": number + 1,
                    "l_quantity": Decimal(dice.randrange(1, 51)).quantize(Decimal("0.01")),
                    "l_extendedprice": _money(dice, 900, 90000),
                    "l_discount": Decimal(dice.randrange(11)).scaleb(-2),
                    "l_tax": Decimal(dice.randrange(9)).scaleb(-2),
                    "l_returnflag": pick("ARN"),
                    "l_linestatus": pick("OF"),
                    "l_shipdate": shipped,
                    "l_commitdate": day + timedelta(days=dice.randrange(30, 90)),
                    "l_receiptdate": shipped + timedelta(days=dice.randrange(1, 30)),
                    "l_shipinstruct": pick(["DELIVER IN PERSON", "NONE"]),
                    "l_shipmode": pick(["AIR", "AIR REG", "MAIL", "SHIP"]),
                    "l_comment": "c",
                }
            )
    return {
        "region": _table(region, "r_regionkey:i r_name:s r_comment:s"),
        "nation": _table(nation, "n_nationkey:i n_name:s n_regionkey:i n_comment:s"),
        "supplier": _table(
            supplier, "s_suppkey:i s_name:s s_address:s s_nationkey:i s_phone:s s_acctbal:m s_comment:s"
        ),
        "customer": _table(
            customer,
            "c_custkey:i c_name:s c_address:s c_nationkey:i c_phone:s c_acctbal:m c_mktsegment:s c_comment:s",
        ),
        "part": _table(
            part,
            "p_partkey:i p_name:s p_mfgr:s p_brand:s p_type:s p_size:n p_container:s p_retailprice:m p_comment:s",
        ),
        "partsupp": _table(partsupp, "ps_partkey:i ps_suppkey:i ps_availqty:n ps_supplycost:m ps_comment:s"),
        "orders": _table(
            orders,
            "o_orderkey:i o_custkey:i o_orderstatus:s o_totalprice:m o_orderdate:d o_orderpriority:s o_clerk:s "
            "o_shippriority:n o_comment:s",
        ),
        "lineitem": _table(
            lineitem,
            "l_orderkey:i l_partkey:i l_suppkey:i l_linenumber:n l_quantity:m l_extendedprice:m l_discount:m l_tax:m "
            "l_returnflag:s l_linestatus:s l_shipdate:d l_commitdate:d l_receiptdate:d l_shipinstruct:s l_shipmode:s "
            "l_comment:s",
        ),
    }
