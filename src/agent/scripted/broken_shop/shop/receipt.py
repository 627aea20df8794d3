"""Receipts as plain text."""

from collections.abc import Mapping

from shop.basket import Order
from shop.pricing import line_total


def money(cents: int) -> str:
    """Return an amount as it is printed: 1234 is 12.34."""
    return f"{cents // 100}.{cents % 100:02d}"


def receipt(order: Order, prices: Mapping[str, int]) -> str:
    """Return one line for each product of an order, then the total."""
    totals = {product: line_total(prices[product], quantity) for product, quantity in order.lines.items()}
    rows = [f"{order.lines[product]} x {product}: {money(total)}" for product, total in totals.items()]
    return "\n".join([*rows, f"Total: {money(sum(totals.values()))}"])
