import pytest

from shop.basket import Basket


def test_adding_twice_adds_up():
    basket = Basket()
    basket.add("apple", 2)
    basket.add("apple")
    assert basket.lines == {"apple": 3}


def test_order_keeps_what_was_in_the_basket():
    basket = Basket()
    basket.add("apple", 2)
    order = basket.checkout()
    assert order.lines == {"apple": 2}


def test_basket_is_empty_after_checkout():
    basket = Basket()
    basket.add("apple")
    basket.checkout()
    assert basket.lines == {}


def test_next_purchase_leaves_the_first_order_alone():
    basket = Basket()
    basket.add("apple", 2)
    first = basket.checkout()
    basket.add("pear", 5)
    assert first.lines == {"apple": 2}


def test_empty_basket_cannot_check_out():
    with pytest.raises(ValueError, match="empty"):
        Basket().checkout()
