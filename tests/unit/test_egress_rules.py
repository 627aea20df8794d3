"""What the network options of a request mean."""

from typing import Any

import pytest

from e2b_local.egress import Egress, understood
from e2b_local.errors import ApiError

ALL = "0.0.0.0/0"
ONE = "198.51.100.1"


@pytest.mark.parametrize(
    ("body", "given", "rules"),
    [
        ({}, None, None),
        ({}, False, None),
        ({}, True, Egress(rest=True)),
        ({"allowPublicTraffic": False}, None, None),
        ({"denyOut": [ALL]}, True, None),
        ({"denyOut": [ALL, "::/0"]}, True, None),
        ({"denyOut": [ONE]}, None, None),
        ({"denyOut": [ONE]}, True, Egress(rest=True, denied=(f"{ONE}/32",))),
        ({"allowOut": [ALL]}, None, Egress(rest=True)),
        ({"allowOut": [ALL], "denyOut": [ALL]}, False, Egress(rest=True)),
        ({"allowOut": [ONE]}, None, Egress(allowed=(f"{ONE}/32",))),
        ({"allowOut": [ONE]}, False, Egress(allowed=(f"{ONE}/32",))),
        # Nothing is denied that it would have to be allowed against.
        ({"allowOut": [ONE]}, True, Egress(rest=True)),
        (
            {"allowOut": ["198.51.100.7/24", ONE], "denyOut": [ALL]},
            True,
            Egress(allowed=("198.51.100.0/24", f"{ONE}/32")),
        ),
        (
            {"allowOut": [ONE], "denyOut": ["198.51.100.0/24"]},
            True,
            Egress(rest=True, allowed=(f"{ONE}/32",), denied=("198.51.100.0/24",)),
        ),
        ({"allowOut": ["Shop.Example."], "denyOut": [ALL]}, None, Egress(names=("shop.example",))),
        ({"allowOut": ["*.a.example", ONE]}, False, Egress(allowed=(f"{ONE}/32",), names=("*.a.example",))),
        ({"allowOut": ["*"], "denyOut": [ALL]}, None, Egress(names=("*",))),
        ({"allowOut": [], "denyOut": None}, None, None),
    ],
)
def test_what_is_opened(body: dict[str, Any], given: bool | None, rules: Egress | None) -> None:
    """What is allowed wins over what is denied; without a word nothing is open."""
    assert understood(body, given) == rules


@pytest.mark.parametrize(
    ("body", "given", "said"),
    [
        ({"allowOut": ["shop.example"]}, None, "deny 0.0.0.0/0"),
        ({"allowOut": ["shop.example"]}, True, "deny 0.0.0.0/0"),
        (
            {"allowOut": ["http://shop.example"], "denyOut": [ALL]},
            None,
            "'http://shop.example' is no IP address",
        ),
        ({"allowOut": ["shop.example:443"], "denyOut": [ALL]}, None, "'shop.example:443' is no IP address"),
        ({"allowOut": ["1.2.3.400"], "denyOut": [ALL]}, None, "'1.2.3.400' is no IP address"),
        ({"allowOut": ["a" * 64], "denyOut": [ALL]}, None, "is no IP address"),
        ({"allowOut": [".".join(["abc"] * 64)], "denyOut": [ALL]}, None, "is no IP address"),
        ({"allowOut": [""], "denyOut": [ALL]}, None, "'' is no IP address"),
        ({"allowOut": ["2001:db8::1"], "denyOut": [ALL]}, None, "no rules for IPv6, such as 2001:db8::1/128"),
        ({"denyOut": ["::/0"]}, True, "no rules for IPv6"),
        ({"denyOut": ["shop.example"]}, None, "names cannot be denied"),
        ({"denyOut": "0.0.0.0/0"}, True, "denyOut must be a list of at most 1000 strings"),
        ({"allowOut": [1]}, None, "allowOut must be a list"),
        ({"allowOut": [ONE] * 1001}, None, "allowOut must be a list"),
        ({"rules": {"a.example": []}, "httpsPorts": [1]}, None, "no network options httpsPorts"),
        ({}, "false", "allow_internet_access must be true or false"),
        ({}, 1, "allow_internet_access must be true or false"),
    ],
)
def test_what_cannot_be_kept_is_refused(body: dict[str, Any], given: Any, said: str) -> None:
    """With one line that names it."""
    with pytest.raises(ApiError) as caught:
        understood(body, given)
    assert caught.value.status == 400
    assert said in caught.value.message


def test_a_name_is_allowed_by_its_rule_alone() -> None:
    """`*.` stands for names below, of any depth; upper case and a last dot make no difference."""
    rules = Egress(names=("shop.example", "*.wide.example"))
    for name in ("shop.example", "SHOP.example.", "a.wide.example", "a.b.wide.example"):
        assert rules.allows(name)
    for name in ("", ".", "example", "a.shop.example", "wide.example", "xwide.example", "shop.example.evil"):
        assert not rules.allows(name)
    wide = Egress(names=("*.wide.example", "*"))
    for name in (
        "other.example\0.wide.example",
        "a b.wide.example",
        "ä.wide.example",
        "a/.wide.example",
        "a" * 254,
    ):
        assert not wide.allows(name)
    assert Egress(names=("*",)).allows("any.example")
    assert not Egress(rest=True).allows("any.example")
