"""Allowed targets of webhooks: addresses of the public internet, unless the console's settings allow more.

The host name is resolved once, all its addresses are checked, and the connection uses a checked address. So a name
that resolves to another address later (DNS rebinding) has no effect.
"""

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from hekla.domain.errors import Refused

_INTERNET = ip_network("2000::/3")
"""All that is assigned for the public internet. Outside are local addresses, and IPv4 addresses in other forms."""
_TUNNELS = (ip_network("2002::/16"), ip_network("2001::/32"))
"""6to4 and Teredo, which contain IPv4 addresses."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """A checked target. `url`: with the IP address; `host`: the original network location; `name`: the host name."""

    url: str
    host: str
    name: str


def check(url: str) -> None:
    """Check a URL without resolving its host name. Raises Refused."""
    parts = _split(url)
    if literal := _literal(parts.hostname or ""):
        _require_public(literal)


def resolve(url: str) -> Target:
    """Resolve the host name and check all its addresses. Raises Refused."""
    parts = _split(url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Refused(_("Cannot resolve the host “%s”.") % host[:120]) from error
    addresses = [ip_address(str(entry[4][0])) for entry in found]
    for address in addresses:
        _require_public(address)
    number = f"[{addresses[0]}]" if addresses[0].version == 6 else str(addresses[0])  # noqa: PLR2004
    path = parts._replace(netloc=f"{number}:{port}", fragment="").geturl()
    return Target(path, parts.netloc, host)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in _PORTS or not parts.hostname or port == 0:
        raise Refused(_("Enter an address that begins with https:// or http://."))
    if parts.username or parts.password:
        raise Refused(_("The address must not contain a user name or password. The signature identifies the sender."))
    return parts


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _require_public(address: IPv4Address | IPv6Address) -> None:
    if settings.WEBHOOKS_MAY_BE_PRIVATE:
        return
    meant = getattr(address, "ipv4_mapped", None) or address
    if meant.is_multicast or not meant.is_global or not (isinstance(meant, IPv4Address) or _is_on_internet(meant)):
        raise Refused(_("%s is not a public internet address. Webhooks cannot be sent there.") % meant)


def _is_on_internet(address: IPv6Address) -> bool:
    """Whether the address is public by its network. One with a zone (`%eth0`) is for one link only."""
    return address in _INTERNET and not address.scope_id and not any(address in network for network in _TUNNELS)
