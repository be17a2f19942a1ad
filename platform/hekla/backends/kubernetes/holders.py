"""The account and the expiry of credentials, as the credentials state them. Unverified: for display only."""

import base64
import json
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.x509.oid import NameOID

from hekla.backends.kubernetes.keys import ClusterKey


def holder(key: ClusterKey) -> str:
    """The account of a token, the common name of a certificate, or else the user name in the kubeconfig."""
    name = _claims(key.token).get("sub") if key.token else _common_name(key.certificate)
    return name if isinstance(name, str) and name.isprintable() and name else key.user


def valid_until(key: ClusterKey) -> datetime | None:
    """The expiry; None if the credentials do not state it."""
    try:
        if key.token:
            return datetime.fromtimestamp(int(_claims(key.token)["exp"]), UTC)
        return _certificate(key.certificate).not_valid_after_utc if key.certificate else None
    except (LookupError, TypeError, ValueError, OverflowError, OSError):
        return None


def _claims(token: str) -> dict[str, Any]:
    """The claims of a JSON Web Token (RFC 7519); empty for any other token."""
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
