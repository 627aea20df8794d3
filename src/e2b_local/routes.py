"""A program that lays down, in the network of a box, which ways lead out of it.

It reads the rules as JSON from its standard input, enters the network given as an open file, and sends back
over a socket what listens there for the hosts that are allowed by name. The rules come before the box's own
routes, and nobody in the box has the right to change them.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import sys
from typing import Any

NAME_PORTS = (80, 443)
"""Where the name of a host can be read off what is sent."""
_LOCAL_TABLE, _MAIN_TABLE, _OUR_TABLE = 255, 254, 100
# The order in which the kernel asks; the box's own routes come last, at 32766.
_OWN, _OPEN, _SHUT, _NAMED = 1, 100, 110, 120
_EVERYWHERE = "0.0.0.0/0"
_SCOPE_HOST = 254  # linux/rtnetlink.h


def main() -> None:
    """Enter the namespaces given as open files, set the routes, hand over the listening sockets."""
    network, channel, *owner = (int(argument) for argument in sys.argv[1:])
    rules = json.load(sys.stdin)
    for namespace in (*owner, network):
        _enter(namespace)
    _replace(rules)
    listening = [_listen(port) for port in NAME_PORTS] if rules["names"] else []
    with socket.socket(fileno=channel) as connection:
        socket.send_fds(connection, [b"ready"], [each.fileno() for each in listening])


def _enter(namespace: int) -> None:
    # os.setns is of Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")


def _replace(rules: dict[str, Any]) -> None:
    # Imported here: the library's start costs more than all the rest of this program.
    from pyroute2 import IPRoute

    with IPRoute() as kernel:
        named = {"dst": _EVERYWHERE, "type": "local", "table": _LOCAL_TABLE, "scope": _SCOPE_HOST}
        named["oif"] = kernel.link_lookup(ifname="lo")[0]
        for priority in (_OPEN, _SHUT, _NAMED):
            kernel.flush_rules(priority=priority)
        kernel.flush_routes(table=_OUR_TABLE)
        # The box's own addresses come first, but not (as the last line here makes it) every address there is.
        if not list(kernel.get_rules(priority=_OWN)):
            kernel.rule("add", priority=_OWN, table=_LOCAL_TABLE, suppress_prefixlen=0)
            kernel.rule("del", priority=0, table=_LOCAL_TABLE)
        for network in rules["open"]:
            kernel.rule("add", priority=_OPEN, dst=network, table=_MAIN_TABLE)
        for network in rules["shut"]:
            kernel.route("add", dst=network, type="unreachable", table=_OUR_TABLE)
        kernel.rule("add", priority=_SHUT, table=_OUR_TABLE)
        if rules["names"]:
            # Every other address is this box's own, and the two ports that matter are answered from outside.
            kernel.route("replace", **named)
            kernel.rule("add", priority=_NAMED, table=_LOCAL_TABLE)


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("0.0.0.0", port))
    listening.listen(128)
    return listening


if __name__ == "__main__":
    main()
