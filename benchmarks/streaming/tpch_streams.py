"""TPC-H's queries as streams: filters, joins, groups and the first rows.

Streams join by equal keys and have no subqueries, so those are written as what they mean:

- a scalar subquery (q11, q15, q22) is a row of one aggregate, joined by a constant;
- a correlated one (q2, q17, q20) is an aggregate by its key, joined by it; EXISTS, IN and their negations are semi and anti joins;
- q21 asks for another supplier of the same order, which is no equality: an order has one if it has more than one supplier, and the supplier
  that waits is alone in being late if one supplier of the order is late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from headwater.lakehouse import Lake
from headwater.timeseries.stream import Stream

__all__ = ["STREAMS", "Tables"]

_REVENUE = "sum(l_extendedprice * (1 - l_discount))"
_VOLUME = "l_extendedprice * (1 - l_discount)"


class Tables:
    """The tables as streams, of which each query takes its own."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake

    def __getattr__(self, name: str) -> Stream:
        return self._lake.stream(name)

    def nations(self, region: str) -> Stream:
        """The nations of a region."""
        found = self.region.filter(f"r_name = '{region}'").select("r_regionkey")
        return self.nation.join(found, {"n_regionkey": "r_regionkey"}, how="semi").select("n_nationkey", "n_name")

    def nation_named(self, name: str) -> Stream:
        return self.nation.filter(f"n_name = '{name}'").select("n_nationkey")


def q1(t: Tables) -> Stream:
    lines = t.lineitem.filter("l_shipdate <= date '1998-12-01' - interval '90' day")
    return lines.group("l_returnflag", "l_linestatus").agg(
        sum_qty="sum(l_quantity)",
        sum_base_price="sum(l_extendedprice)",
        sum_disc_price=_REVENUE,
        sum_charge="sum(l_extendedprice * (1 - l_discount) * (1 + l_tax))",
        avg_qty="avg(l_quantity)",
        avg_price="avg(l_extendedprice)",
        avg_disc="avg(l_discount)",
        count_order="count(*)",
    )


def q2(t: Tables) -> Stream:
    suppliers = t.supplier.join(t.nations("EUROPE"), {"s_nationkey": "n_nationkey"})
    parts = t.part.filter("p_size = 15 AND p_type LIKE '%BRASS'").select("p_partkey", "p_mfgr")
    offers = t.partsupp.select("ps_partkey", "ps_suppkey", "ps_supplycost")
    offers = offers.join(parts, {"ps_partkey": "p_partkey"}).join(suppliers, {"ps_suppkey": "s_suppkey"})
    least = offers.group("ps_partkey").agg(least="min(ps_supplycost)")
    found = offers.join(least, {"ps_partkey": "ps_partkey", "ps_supplycost": "least"}).rename(ps_partkey="p_partkey")
    columns = "s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment"
    order = ["s_acctbal", "n_name", "s_name", "p_partkey"]
    return found.select(*columns).top_k(100, by=order, descending=[True, False, False, False])


def q3(t: Tables) -> Stream:
    customers = t.customer.filter("c_mktsegment = 'BUILDING'").select("c_custkey")
    orders = t.orders.filter("o_orderdate < date '1995-03-15'")
    orders = orders.join(customers, {"o_custkey": "c_custkey"}).select("o_orderkey", "o_orderdate", "o_shippriority")
    lines = t.lineitem.filter("l_shipdate > date '1995-03-15'").join(orders, {"l_orderkey": "o_orderkey"})
    found = lines.group("l_orderkey", "o_orderdate", "o_shippriority").agg(revenue=_REVENUE)
    found = found.select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
    return found.top_k(10, by=["revenue", "o_orderdate", "l_orderkey"], descending=[True, False, False])


def q4(t: Tables) -> Stream:
    orders = t.orders.filter(
        "o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-07-01' + interval '3' month"
    )
    late = t.lineitem.filter("l_commitdate < l_receiptdate").select("l_orderkey")
    return orders.join(late, {"o_orderkey": "l_orderkey"}, how="semi").group("o_orderpriority").count("order_count")


def q5(t: Tables) -> Stream:
    orders = t.orders.filter("o_orderdate >= date '1994-01-01' AND o_orderdate < date '1994-01-01' + interval '1' year")
    customers = t.customer.select("c_custkey", "c_nationkey")
    placed = orders.join(customers, {"o_custkey": "c_custkey"}).select("o_orderkey", "c_nationkey")
    suppliers = t.supplier.join(t.nations("ASIA"), {"s_nationkey": "n_nationkey"})
    lines = t.lineitem.join(placed, {"l_orderkey": "o_orderkey"})
    local = lines.join(suppliers, {"l_suppkey": "s_suppkey", "c_nationkey": "s_nationkey"})
    return local.group("n_name").agg(revenue=_REVENUE)


def q6(t: Tables) -> Stream:
    lines = t.lineitem.filter(
        "l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1' year "
        "AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24"
    )
    return lines.agg(revenue="sum(l_extendedprice * l_discount)")


def q7(t: Tables) -> Stream:
    nations = t.nation.filter("n_name IN ('FRANCE', 'GERMANY')")
    of_suppliers = nations.select("n_nationkey", supp_nation="n_name")
    of_customers = nations.select("n_nationkey", cust_nation="n_name")
    suppliers = t.supplier.join(of_suppliers, {"s_nationkey": "n_nationkey"}).select("s_suppkey", "supp_nation")
    customers = t.customer.join(of_customers, {"c_nationkey": "n_nationkey"}).select("c_custkey", "cust_nation")
    orders = t.orders.join(customers, {"o_custkey": "c_custkey"}).select("o_orderkey", "cust_nation")
    lines = t.lineitem.filter("l_shipdate BETWEEN date '1995-01-01' AND date '1996-12-31'")
    shipped = lines.join(suppliers, {"l_suppkey": "s_suppkey"}).join(orders, {"l_orderkey": "o_orderkey"})
    shipped = shipped.filter("supp_nation <> cust_nation")
    shipping = shipped.select("supp_nation", "cust_nation", l_year="extract(year FROM l_shipdate)", volume=_VOLUME)
    return shipping.group("supp_nation", "cust_nation", "l_year").agg(revenue="sum(volume)")


def q8(t: Tables) -> Stream:
    customers = t.customer.join(t.nations("AMERICA"), {"c_nationkey": "n_nationkey"}, how="semi").select("c_custkey")
    orders = t.orders.filter("o_orderdate BETWEEN date '1995-01-01' AND date '1996-12-31'")
    orders = orders.join(customers, {"o_custkey": "c_custkey"}).select("o_orderkey", "o_orderdate")
    suppliers = t.supplier.join(t.nation.select("n_nationkey", nation="n_name"), {"s_nationkey": "n_nationkey"})
    parts = t.part.filter("p_type = 'ECONOMY ANODIZED STEEL'").select("p_partkey")
    lines = t.lineitem.join(parts, {"l_partkey": "p_partkey"}).join(orders, {"l_orderkey": "o_orderkey"})
    sold = lines.join(suppliers, {"l_suppkey": "s_suppkey"})
    sold = sold.select("nation", o_year="extract(year FROM o_orderdate)", volume=_VOLUME)
    share = "sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume)"
    return sold.group("o_year").agg(mkt_share=share)


def q9(t: Tables) -> Stream:
    parts = t.part.filter("p_name LIKE '%green%'").select("p_partkey")
    suppliers = t.supplier.join(t.nation.select("n_nationkey", nation="n_name"), {"s_nationkey": "n_nationkey"})
    offers = t.partsupp.select("ps_partkey", "ps_suppkey", "ps_supplycost")
    lines = t.lineitem.join(parts, {"l_partkey": "p_partkey"})
    lines = lines.join(offers, {"l_partkey": "ps_partkey", "l_suppkey": "ps_suppkey"})
    lines = lines.join(t.orders.select("o_orderkey", "o_orderdate"), {"l_orderkey": "o_orderkey"})
    lines = lines.join(suppliers.select("s_suppkey", "nation"), {"l_suppkey": "s_suppkey"})
    amount = f"{_VOLUME} - ps_supplycost * l_quantity"
    profit = lines.select("nation", o_year="extract(year FROM o_orderdate)", amount=amount)
    return profit.group("nation", "o_year").agg(sum_profit="sum(amount)")


def q10(t: Tables) -> Stream:
    orders = t.orders.filter(
        "o_orderdate >= date '1993-10-01' AND o_orderdate < date '1993-10-01' + interval '3' month"
    )
    lines = t.lineitem.filter("l_returnflag = 'R'")
    lines = lines.join(orders.select("o_orderkey", "o_custkey"), {"l_orderkey": "o_orderkey"})
    customers = t.customer.join(t.nation.select("n_nationkey", "n_name"), {"c_nationkey": "n_nationkey"})
    lines = lines.join(customers, {"o_custkey": "c_custkey"}).rename(o_custkey="c_custkey")
    keys = "c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"
    found = lines.group(*keys).agg(revenue=_REVENUE)
    found = found.select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_address", "c_phone", "c_comment")
    return found.top_k(20, by=["revenue", "c_custkey"], descending=[True, False])


def q11(t: Tables) -> Stream:
    suppliers = t.supplier.join(t.nation_named("GERMANY"), {"s_nationkey": "n_nationkey"}).select("s_suppkey")
    offers = t.partsupp.join(suppliers, {"ps_suppkey": "s_suppkey"}, how="semi")
    least = offers.agg(least="sum(ps_supplycost * ps_availqty) * 0.0001000000").with_columns(one="1")
    values = offers.group("ps_partkey").agg(value="sum(ps_supplycost * ps_availqty)").with_columns(one="1")
    return values.join(least, "one", broadcast=True).filter("value > least").select("ps_partkey", "value")


def q12(t: Tables) -> Stream:
    lines = t.lineitem.filter(
        "l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate "
        "AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1994-01-01' + interval '1' year"
    )
    both = lines.join(t.orders.select("o_orderkey", "o_orderpriority"), {"l_orderkey": "o_orderkey"})
    urgent = "o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH'"
    return both.group("l_shipmode").agg(
        high_line_count=f"sum(CASE WHEN {urgent} THEN 1 ELSE 0 END)",
        low_line_count=f"sum(CASE WHEN NOT ({urgent}) THEN 1 ELSE 0 END)",
    )


def q13(t: Tables) -> Stream:
    orders = t.orders.filter("o_comment NOT LIKE '%special%requests%'").select("o_orderkey", "o_custkey")
    both = t.customer.select("c_custkey").join(orders, {"c_custkey": "o_custkey"}, how="left")
    return both.group("c_custkey").agg(c_count="count(o_orderkey)").group("c_count").count("custdist")


def q14(t: Tables) -> Stream:
    lines = t.lineitem.filter("l_shipdate >= date '1995-09-01' AND l_shipdate < date '1995-09-01' + interval '1' month")
    both = lines.join(t.part.select("p_partkey", "p_type"), {"l_partkey": "p_partkey"})
    promoted = f"sum(CASE WHEN p_type LIKE 'PROMO%' THEN {_VOLUME} ELSE 0 END)"
    return both.agg(promo_revenue=f"100.00 * {promoted} / {_REVENUE}")


def q15(t: Tables) -> Stream:
    lines = t.lineitem.filter("l_shipdate >= date '1996-01-01' AND l_shipdate < date '1996-01-01' + interval '3' month")
    revenue = lines.group("l_suppkey").agg(total_revenue=_REVENUE)
    best = revenue.agg(best="max(total_revenue)")
    first = revenue.join(best, {"total_revenue": "best"}, broadcast=True)
    both = t.supplier.join(first, {"s_suppkey": "l_suppkey"})
    return both.select("s_suppkey", "s_name", "s_address", "s_phone", "total_revenue")


def q16(t: Tables) -> Stream:
    parts = t.part.filter(
        "p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)"
    )
    blamed = t.supplier.filter("s_comment LIKE '%Customer%Complaints%'").select("s_suppkey")
    offers = t.partsupp.select("ps_partkey", "ps_suppkey").join(blamed, {"ps_suppkey": "s_suppkey"}, how="anti")
    both = offers.join(parts.select("p_partkey", "p_brand", "p_type", "p_size"), {"ps_partkey": "p_partkey"})
    return both.group("p_brand", "p_type", "p_size").agg(supplier_cnt="count(DISTINCT ps_suppkey)")


def q17(t: Tables) -> Stream:
    parts = t.part.filter("p_brand = 'Brand#23' AND p_container = 'MED BOX'").select("p_partkey")
    lines = t.lineitem.select("l_partkey", "l_quantity", "l_extendedprice")
    usual = lines.group("l_partkey").agg(few="0.2 * avg(l_quantity)")
    sold = lines.join(parts, {"l_partkey": "p_partkey"}).join(usual, "l_partkey").filter("l_quantity < few")
    return sold.agg(avg_yearly="sum(l_extendedprice) / 7.0")


def q18(t: Tables) -> Stream:
    quantities = t.lineitem.group("l_orderkey").agg(total="sum(l_quantity)").filter("total > 300")
    orders = t.orders.join(quantities.select("l_orderkey"), {"o_orderkey": "l_orderkey"}, how="semi")
    both = orders.join(t.customer.select("c_custkey", "c_name"), {"o_custkey": "c_custkey"}).rename(
        o_custkey="c_custkey"
    )
    lines = t.lineitem.select("l_orderkey", "l_quantity").join(both, {"l_orderkey": "o_orderkey"})
    lines = lines.rename(l_orderkey="o_orderkey")
    keys = "c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice"
    found = lines.group(*keys).agg({"sum(l_quantity)": "sum(l_quantity)"})
    return found.top_k(100, by=["o_totalprice", "o_orderdate", "o_orderkey"], descending=[True, False, False])


def q19(t: Tables) -> Stream:
    lines = t.lineitem.filter("l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'")
    parts = t.part.select("p_partkey", "p_brand", "p_container", "p_size")
    kinds = (
        ("Brand#12", "'SM CASE', 'SM BOX', 'SM PACK', 'SM PKG'", 1, 5),
        ("Brand#23", "'MED BAG', 'MED BOX', 'MED PKG', 'MED PACK'", 10, 10),
        ("Brand#34", "'LG CASE', 'LG BOX', 'LG PACK', 'LG PKG'", 20, 15),
    )
    wanted = " OR ".join(
        f"(p_brand = '{brand}' AND p_container IN ({boxes}) "
        f"AND l_quantity >= {least} AND l_quantity <= {least} + 10 AND p_size BETWEEN 1 AND {size})"
        for brand, boxes, least, size in kinds
    )
    return lines.join(parts, {"l_partkey": "p_partkey"}).filter(wanted).agg(revenue=_REVENUE)


def q20(t: Tables) -> Stream:
    parts = t.part.filter("p_name LIKE 'forest%'").select("p_partkey")
    lines = t.lineitem.filter("l_shipdate >= date '1994-01-01' AND l_shipdate < date '1994-01-01' + interval '1' year")
    half = lines.group("l_partkey", "l_suppkey").agg(half="0.5 * sum(l_quantity)")
    offers = t.partsupp.select("ps_partkey", "ps_suppkey", "ps_availqty")
    offers = offers.join(parts, {"ps_partkey": "p_partkey"}, how="semi")
    offers = offers.join(half, {"ps_partkey": "l_partkey", "ps_suppkey": "l_suppkey"}).filter("ps_availqty > half")
    suppliers = t.supplier.join(t.nation_named("CANADA"), {"s_nationkey": "n_nationkey"})
    found = suppliers.join(offers.select("ps_suppkey"), {"s_suppkey": "ps_suppkey"}, how="semi")
    return found.select("s_name", "s_address")


def q21(t: Tables) -> Stream:
    late = "CASE WHEN l_receiptdate > l_commitdate THEN l_suppkey END"
    shared = t.lineitem.group("l_orderkey").agg(
        suppliers="count(DISTINCT l_suppkey)", late_suppliers=f"count(DISTINCT {late})"
    )
    shared = shared.filter("suppliers > 1 AND late_suppliers = 1").select("l_orderkey")
    suppliers = t.supplier.join(t.nation_named("SAUDI ARABIA"), {"s_nationkey": "n_nationkey"})
    lines = t.lineitem.filter("l_receiptdate > l_commitdate").select("l_orderkey", "l_suppkey")
    lines = lines.join(suppliers.select("s_suppkey", "s_name"), {"l_suppkey": "s_suppkey"})
    orders = t.orders.filter("o_orderstatus = 'F'").select("o_orderkey")
    waits = lines.join(orders, {"l_orderkey": "o_orderkey"}).join(shared, "l_orderkey", how="semi")
    found = waits.group("s_name").count("numwait")
    return found.top_k(100, by=["numwait", "s_name"], descending=[True, False])


def q22(t: Tables) -> Stream:
    codes = "('13', '31', '23', '29', '30', '18', '17')"
    customers = t.customer.select("c_custkey", "c_acctbal", cntrycode="substring(c_phone, 1, 2)")
    customers = customers.filter(f"cntrycode IN {codes}")
    usual = customers.filter("c_acctbal > 0.00").agg(usual="avg(c_acctbal)").with_columns(one="1")
    rich = customers.with_columns(one="1").join(usual, "one", broadcast=True).filter("c_acctbal > usual")
    idle = rich.join(t.orders.select("o_custkey"), {"c_custkey": "o_custkey"}, how="anti")
    return idle.group("cntrycode").agg(numcust="count(*)", totacctbal="sum(c_acctbal)")


STREAMS: Mapping[str, Callable[[Tables], Stream]] = {
    f.__name__: f
    for f in (q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22)
}
