from shop.basket import Basket, Order
from shop.receipt import money, receipt

PRICES = {"apple": 50, "pear": 75}


def test_money_has_two_decimals():
    assert money(1205) == "12.05"


def test_receipt_ends_with_the_total():
    assert receipt(Order({"apple": 2, "pear": 1}), PRICES).splitlines()[-1] == "Total: 1.75"


def test_receipt_of_a_checked_out_basket_lists_its_products():
    basket = Basket()
    basket.add("pear", 2)
    assert receipt(basket.checkout(), PRICES) == "2 x pear: 1.50\nTotal: 1.50"
