"""A program that lays down, in the network of a box, what may leave it.

It reads the rules as JSON from its standard input, enters the network given as an open file, and sends back
over a socket what listens there for the hosts that are allowed by name. Routes lead every packet its way, and
tell a program at once where there is none; a filter holds whatever interface a program chooses. Nobody in the
box has the right to change either.
"""

from __future__ import annotations

import contextlib
import ctypes
import ipaddress
import json
import os
import socket
import sys
from collections.abc import Iterator
from typing import Any

from pyroute2 import IPRoute

from e2b_local import netfilter
from e2b_local.netfilter import by_protocol, goes_to, leaves_by, to_port
from e2b_local.open_connections import break_all

NAME_PORTS = (80, 443)
"""Where the name of a host can be read off what is sent."""
_LOCAL_TABLE, _MAIN_TABLE, _OUR_TABLE = 255, 254, 100
# The order in which the kernel asks; the box's own routes come last, at 32766.
_OWN, _OPEN, _SHUT, _NAMED = 1, 100, 110, 120
_EVERYWHERE = "0.0.0.0/0"
_SCOPE_HOST = 254  # linux/rtnetlink.h


def main() -> None:
    """Enter the namespaces given as open files, lay the rules, hand over the listening sockets."""
    network, channel, *owner = (int(argument) for argument in sys.argv[1:])
    rules = json.load(sys.stdin)
    inward = list(_inward())
    for namespace in (*owner, network):
        _enter(namespace)
    _filter(rules, inward)
    _route(rules)
    # A kernel that cannot: the connections get no further all the same, and wait.
    with contextlib.suppress(OSError):
        break_all()
    listening = [_listen(port) for port in NAME_PORTS] if rules["names"] else []
    with socket.socket(fileno=channel) as connection:
        socket.send_fds(connection, [b"ready"], [each.fileno() for each in listening])


def _inward() -> Iterator[netfilter.Network]:
    """Tell what leads to the machine itself, on whose behalf a packet that leaves the box is sent again."""
    yield from map(ipaddress.ip_network, ("0.0.0.0/8", "127.0.0.0/8", "::/127"))
    # To all that listen, this machine among them.
    yield from map(ipaddress.ip_network, ("224.0.0.0/4", "255.255.255.255/32"))
    with IPRoute() as kernel:
        for each in kernel.get_addr():
            address = each.get_attr("IFA_LOCAL") or each.get_attr("IFA_ADDRESS")
            yield ipaddress.ip_network(str(address))


def _enter(namespace: int) -> None:
    # os.setns is of Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")


def _filter(rules: dict[str, Any], inward: list[netfilter.Network]) -> None:
    stays: netfilter.Rule = ([leaves_by("lo")], True)
    four, six = ([([goes_to(each)], False) for each in inward if each.version == kind] for kind in (4, 6))
    server = goes_to(ipaddress.ip_network(rules["name_server"]))
    # Over UDP alone, which is all that pasta passes on to the name server.
    asked = ([server, by_protocol(socket.IPPROTO_UDP), to_port(53)], bool(rules["ask"]))
    opened = [([goes_to(ipaddress.ip_network(each))], True) for each in rules["open"]]
    shut = [([goes_to(ipaddress.ip_network(each))], False) for each in rules["shut"]]
    netfilter.replace(
        socket.AF_INET, [stays, *four, asked, ([server], False), *opened, *shut], otherwise=rules["rest"]
    )
    # Groups of neighbours, too; but not ICMP, by which the kernel finds them.
    group = ([goes_to(ipaddress.ip_network("ff00::/8")), by_protocol(socket.IPPROTO_UDP)], False)
    netfilter.replace(socket.AF_INET6, [stays, group, *six], otherwise=rules["six"])


def _route(rules: dict[str, Any]) -> None:
    with IPRoute() as kernel:
        for priority in (_OPEN, _SHUT, _NAMED):
            kernel.flush_rules(priority=priority)
        kernel.flush_routes(table=_OUR_TABLE)
        # The box's own addresses come first, but not (as the last line here makes it) every address there is.
        if not list(kernel.get_rules(priority=_OWN)):
            kernel.rule("add", priority=_OWN, table=_LOCAL_TABLE, suppress_prefixlen=0)
            kernel.rule("del", priority=0, table=_LOCAL_TABLE)
        for network in [rules["name_server"], *rules["open"]] if rules["ask"] else rules["open"]:
            kernel.rule("add", priority=_OPEN, dst=network, table=_MAIN_TABLE)
        nothing_else = not rules["rest"] and not rules["names"]
        for network in [_EVERYWHERE] if nothing_else else rules["shut"]:
            kernel.route("add", dst=network, type="unreachable", table=_OUR_TABLE)
        kernel.rule("add", priority=_SHUT, table=_OUR_TABLE)
        if rules["names"]:
            # Every other address is this box's own, and the two ports that matter are answered from outside.
            named = {"dst": _EVERYWHERE, "type": "local", "table": _LOCAL_TABLE, "scope": _SCOPE_HOST}
            kernel.route("replace", **named, oif=kernel.link_lookup(ifname="lo")[0])
            kernel.rule("add", priority=_NAMED, table=_LOCAL_TABLE)


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("0.0.0.0", port))  # in the box's network
    listening.listen(128)
    return listening


if __name__ == "__main__":
    main()
