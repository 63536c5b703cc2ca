"""Functions that the views call by name."""

import headwater as hw


@hw.function(arguments=["double"], returns="string")
def order_size(amount: float | None) -> str | None:
    """Whether an order is small, medium or large."""
    if amount is None:
        return None
    return "small" if amount < 50 else "medium" if amount < 150 else "large"
