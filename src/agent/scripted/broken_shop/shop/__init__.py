"""A small shop: baskets, volume discounts, receipts. Amounts of money are whole cents."""
