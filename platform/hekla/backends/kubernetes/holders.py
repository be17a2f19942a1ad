"""Who holds a key and how long it holds, as far as the key itself says so. Nothing of this is checked: it is shown."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID

from hekla.backends.kubernetes.keys import ClusterKey


def holder(key: ClusterKey) -> str:
    """The account of a token, the name in a certificate, or else what a kubeconfig calls its user."""
    name = _claims(key.token).get("sub") if key.token else _common_name(key.certificate)
    return name if isinstance(name, str) and name.isprintable() and name else key.user


def valid_until(key: ClusterKey) -> datetime | None:
    """None where the key does not say."""
    try:
        if key.token:
            return datetime.fromtimestamp(int(_claims(key.token)["exp"]), UTC)
        return _certificate(key.certificate).not_valid_after_utc if key.certificate else None
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        return None


def _claims(token: str) -> dict[str, Any]:
    """What stands in the middle of a token of three parts (RFC 7519); nothing for any other."""
    parts = token.split(".")
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "==")) if len(parts) == 3 else {}  # noqa: PLR2004
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _common_name(certificate: str) -> str:
    try:
        names = _certificate(certificate).subject.get_attributes_for_oid(NameOID.COMMON_NAME) if certificate else []
    except ValueError:
        names = []
    return str(names[0].value) if names else ""


def _certificate(certificate: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificate.encode())
