"""What a card did in the day before each payment, and which of its payments had been disputed."""

import headwater as hw


@hw.feature
def velocity(lake: hw.Lake) -> hw.Stream:
    """Payments and cents of the last day, at each payment."""
    payments = lake.stream("transactions", time="paid_at", by="customer_id", tiebreak="transaction_id")
    return payments.rolling("1 day", payments_1d="count(*)", cents_1d="sum(cents)")


@hw.feature
def disputes(lake: hw.Lake) -> hw.Stream:
    """How many payments of the card were disputed, up to each of them."""
    chargebacks = lake.stream("chargebacks", time="paid_at", by="customer_id", tiebreak="transaction_id")
    return chargebacks.cumulative(disputed="count(*)")
