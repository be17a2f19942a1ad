"""The identity of this console for security keys and passkeys: they work for one host name and one origin only."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

_LOCAL = "localhost"
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """`id`: the name that a key stores with a credential; `origin`: the origin that browsers send to the key."""

    id: str
    origin: str

    @property
    def netloc(self) -> str:
        """The host name and the port, as in requests."""
        return urlsplit(self.origin).netloc


def relying_party() -> RelyingParty | None:
    """From the public URL. None if browsers do not support keys there: an IP address instead of a name, or no HTTPS.

    A loopback address, as `up` prints it, is replaced by localhost, which browsers treat as secure.
    """
    address = urlsplit(settings.PUBLIC_URL)
    host = (address.hostname or "").lower()
    if _is_loopback(host):
        host = _LOCAL
    if _is_number(host) or not (address.scheme == "https" or _is_local(host)):
        return None
    return RelyingParty(host, f"{address.scheme}://{host}{_port(address)}")


def _port(address: SplitResult) -> str:
    """The port as browsers write it: the default port is left out."""
    return "" if address.port in (None, _USUAL_PORTS.get(address.scheme)) else f":{address.port}"


def _is_local(host: str) -> bool:
    return host == _LOCAL or host.endswith(f".{_LOCAL}")


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return _is_number(host) and ip_address(host).is_loopback
