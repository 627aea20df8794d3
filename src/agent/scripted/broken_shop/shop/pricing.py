"""Prices of order lines, in cents."""

# (pieces, percent): from so many pieces of one product on, so many percent off. Best tier first.
TIERS = ((50, 10), (10, 5))


def discount_percent(quantity: int) -> int:
    """Return the volume discount: 5 % from 10 pieces on, 10 % from 50 pieces on."""
    for pieces, percent in TIERS:
        if quantity > pieces:
            return percent
    return 0


def line_total(unit_price: int, quantity: int) -> int:
    """Return the price of a line after its discount, rounded to the nearest cent."""
    if quantity < 1:
        raise ValueError(f"quantity must be at least 1, not {quantity}")
    full_price = unit_price * quantity
    return (full_price * (100 - discount_percent(quantity)) + 50) // 100
