import os

import headwater as hw

hw.dp.materialized_view(
    "spend",
    """
    SELECT region, count(*) AS orders, sum(amount) AS total
    FROM orders JOIN customers ON customer = customers.id
    GROUP BY region
    """,
    lake=os.environ["SHOP_LAKE"],
)
