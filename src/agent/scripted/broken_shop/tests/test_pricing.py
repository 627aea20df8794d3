import pytest

from shop.pricing import discount_percent, line_total


def test_single_piece_costs_the_full_price():
    assert line_total(250, 1) == 250


def test_nine_pieces_get_no_discount():
    assert discount_percent(9) == 0


def test_ten_pieces_get_five_percent():
    assert discount_percent(10) == 5


def test_fifty_pieces_get_ten_percent():
    assert line_total(200, 50) == 9000


def test_total_is_rounded_to_the_nearest_cent():
    assert line_total(33, 11) == 345  # 363 less 5 % is 344.85


def test_quantity_below_one_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        line_total(250, 0)
