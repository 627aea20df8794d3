"""What may leave a network, filtered by the kernel: a table of nftables whose chain sees every packet sent.

Routes alone do not hold: a program may name the interface that its packets leave by (`SO_BINDTODEVICE`), and
the kernel then takes every address for a neighbour's.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any

from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.nftables.main import NFTables

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Condition = list[dict[str, Any]]
Rule = tuple[Sequence[Condition], bool]
"""Whether a packet of which all of this holds may leave; the first rule that fits decides."""

_TABLE, _CHAIN = "e2b", "out"
_DROP, _ACCEPT = 0, 1
# linux/netfilter/nf_tables.h
_META_OIF, _META_L4PROTO = 5, 16
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_EQUAL, _AT_MOST, _AT_LEAST = 0, 3, 5


def replace(family: socket.AddressFamily, rules: Iterable[Rule], *, otherwise: bool) -> None:
    """Lay these rules in the place of those that this laid before; `otherwise` is for what none of them fits.

    Raises:
        NetlinkError: the kernel has no nftables, or this process no right to it here.
    """
    with NFTables(nfgen_family=int(family)) as tables:
        with contextlib.suppress(NetlinkError):  # there may be none; if it is anything else, adding one fails
            tables.table("del", name=_TABLE)
        tables.table("add", name=_TABLE)
        policy = _ACCEPT if otherwise else _DROP
        # Closed until all the rules are there.
        tables.chain("add", table=_TABLE, name=_CHAIN, hook="output", type="filter", policy=_DROP)
        for conditions, allowed in rules:
            expressions = [*(part for each in conditions for part in each), _verdict(allowed)]
            tables.rule("add", table=_TABLE, chain=_CHAIN, expressions=(expressions,))
        tables.chain("add", table=_TABLE, name=_CHAIN, hook="output", type="filter", policy=policy)


def leaves_by(interface: str) -> Condition:
    """Hold for what leaves by this interface."""
    index = struct.pack("=I", socket.if_nametoindex(interface))
    return [_expression("meta", KEY=_META_OIF, DREG=1), _compare(_EQUAL, index)]


def goes_to(network: Network) -> Condition:
    """Hold for what is sent to an address of this network."""
    offset, size = (16, 4) if network.version == 4 else (24, 16)
    load = _expression("payload", DREG=1, BASE=_NETWORK_HEADER, OFFSET=offset, LEN=size)
    # The kernel compares bytes, and these are in the order of the network.
    return [
        load,
        _compare(_AT_LEAST, network.network_address.packed),
        _compare(_AT_MOST, network.broadcast_address.packed),
    ]


def by_protocol(protocol: int) -> Condition:
    """Hold for what is sent by this protocol, such as UDP."""
    return [_expression("meta", KEY=_META_L4PROTO, DREG=1), _compare(_EQUAL, bytes([protocol]))]


def to_port(port: int) -> Condition:
    """Hold for what is sent to this port, if by a protocol that has ports."""
    load = _expression("payload", DREG=1, BASE=_TRANSPORT_HEADER, OFFSET=2, LEN=2)
    return [load, _compare(_EQUAL, struct.pack("!H", port))]


def _expression(name: str, **attributes: Any) -> dict[str, Any]:
    prefix = f"NFTA_{name.upper()}"
    listed = {"attrs": [(f"{prefix}_{key}", value) for key, value in attributes.items()]}
    return {"attrs": [("NFTA_EXPR_NAME", name), ("NFTA_EXPR_DATA", listed)]}


def _compare(operation: int, value: bytes) -> dict[str, Any]:
    return _expression("cmp", SREG=1, OP=operation, DATA={"attrs": [("NFTA_DATA_VALUE", value)]})


def _verdict(allowed: bool) -> dict[str, Any]:
    code = {"attrs": [("NFTA_VERDICT_CODE", _ACCEPT if allowed else _DROP)]}
    return _expression("immediate", DREG=0, DATA={"attrs": [("NFTA_DATA_VERDICT", code)]})
