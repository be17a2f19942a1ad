"""Who this console is to security keys and passkeys: they answer to one name at one address, and nowhere else."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

_LOCAL = "localhost"
_USUAL_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class RelyingParty:
    """The name that a key keeps with what it made (`id`), and the address that browsers tell it (`origin`)."""

    id: str
    origin: str

    @property
    def netloc(self) -> str:
        """The name and the port, as requests name them."""
        return urlsplit(self.origin).netloc


def relying_party() -> RelyingParty | None:
    """By the public address. None where browsers offer no keys: a number in the place of a name, or no HTTPS.

    A loopback address, as `up` prints it, is reached as localhost too, which browsers take for safe.
    """
    address = urlsplit(settings.PUBLIC_URL)
    host = (address.hostname or "").lower()
    if _is_loopback(host):
        host = _LOCAL
    if _is_number(host) or not (address.scheme == "https" or _is_local(host)):
        return None
    return RelyingParty(host, f"{address.scheme}://{host}{_port(address)}")


def _port(address: SplitResult) -> str:
    """As browsers write it: the usual one is left out."""
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
