"""The address that Hekla listens on: whether it is free, and its host names."""

import errno
import socket
from collections.abc import Mapping
from contextlib import suppress

from hekla.launcher.terminal import LaunchRefused
from hekla.launcher.up.roles import Address
from hekla.lib.shared_hosts import LOCAL, checked_host

_ALWAYS = ("127.0.0.1", "localhost", "[::1]")
_ANY = {"0.0.0.0", "::"}  # noqa: S104  (compared, not bound)
_HIGHEST_PORT = 65535


def check_free(address: Address) -> None:
    """Raises LaunchRefused if another program uses the port, or Hekla has no permission to listen on it."""
    listen(address).close()


def listen(address: Address) -> socket.socket:
    """A socket that listens at the address. Raises LaunchRefused."""
    try:
        return _listen(address)
    except OSError as error:
        raise LaunchRefused(_explain(address, error)) from None


def allowed_hosts(address: Address) -> str:
    """The host names that requests may use, in the form of HEKLA_ALLOWED_HOSTS."""
    names = list(_ALWAYS)
    if address.host in _ANY:
        names += [socket.gethostname(), socket.getfqdn(), *filter(None, [outward_address()])]
    else:
        names.append(_in_url(address.host))
    return ",".join(dict.fromkeys(names))


def url(address: Address) -> str:
    """The URL for the browser."""
    host = (outward_address() or socket.gethostname()) if address.host in _ANY else address.host
    return f"http://{_in_url(host)}:{address.port}"


def check_tool_host(env: Mapping[str, str]) -> None:
    """Raises LaunchRefused if sessions must not share the host that these settings name."""
    host, domain = env.get("HEKLA_WORKBENCH_HOST", ""), env.get("HEKLA_WORKBENCH_DOMAIN", LOCAL)
    names = env["HEKLA_ALLOWED_HOSTS"].split(",")
    try:
        checked_host(host, console=env["HEKLA_PUBLIC_URL"], domain=domain, names=names)
    except ValueError as error:
        raise LaunchRefused(str(error)) from None


def outward_address() -> str:
    """The address of this machine in its network; empty without a route to the outside. Nothing is sent."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.connect(("192.0.2.1", 9))
        return str(line.getsockname()[0])
    return ""


def _listen(address: Address) -> socket.socket:
    family, kind, protocol, _name, place = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:  # as event loops do: "::" does not open the addresses of IPv4 too
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(place)
        listener.listen()
    except OSError:
        listener.close()
        raise
    return listener


def _explain(address: Address, error: OSError) -> str:
    where = f"port {address.port} of {address.host}"
    if error.errno == errno.EADDRINUSE:
        return f"Another program uses {where}. End it, or start Hekla on another port: --port {_next_free(address)}"
    if error.errno == errno.EACCES:
        return f"Only the administrator may listen on {where}. Choose a port above 1023: --port 8000"
    return f"This machine cannot listen on {where}: {error.strerror or error}. Look at --host and --port."


def _next_free(address: Address) -> int:
    for port in range(address.port + 1, min(address.port + 50, _HIGHEST_PORT)):
        with suppress(OSError):
            _listen(Address(address.host, port)).close()
            return port
    return address.port + 1


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
