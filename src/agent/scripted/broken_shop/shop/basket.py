"""A basket that fills up and becomes an order."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Order:
    """What was bought: product names and their quantities."""

    lines: dict[str, int]


class Basket:
    """What a customer has collected so far."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}

    def add(self, product: str, quantity: int = 1) -> None:
        """Put pieces of a product into the basket, on top of those already in it."""
        if quantity < 1:
            raise ValueError(f"quantity must be at least 1, not {quantity}")
        self.lines[product] = self.lines.get(product, 0) + quantity

    def checkout(self) -> Order:
        """Turn the content into an order and empty the basket for the next one."""
        if not self.lines:
            raise ValueError("the basket is empty")
        order = Order(self.lines)
        self.lines.clear()
        return order
