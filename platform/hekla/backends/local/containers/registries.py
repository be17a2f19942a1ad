"""The credentials for registries of images. Standard library only."""

import base64
import json
from typing import Any

from hekla.backends.local.pod_folder import open_regular

FILE = "registries.json"
"""In the console's data folder: `{"auths": {HOST: {"auth": BASE64}}, "tenants": {NAME: {"auths": …}}}`.

`auths` as in Docker's `config.json`. Those of a tenant come before those that all may use.
"""
_DOCKER_HUB = ("docker.io", "index.docker.io", "https://index.docker.io/v1/")
_MAX_BYTES = 2**20


def header(path: str, image: str, tenant: str) -> tuple[str, bool]:
    """What the engine sends to the image's registry for this tenant, and whether anybody has credentials for it.

    The first is base64 of a JSON document; empty without credentials. Raises ValueError if the file at `path` cannot
    be read.
    """
    host = registry_of(image)
    names = _DOCKER_HUB if host == "docker.io" else (host, f"https://{host}")
    try:
        stored = _read(path)
        tenants = stored.get("tenants", {})
        found = {
            owner: auths[name]
            for owner, auths in [("", stored.get("auths", {})), *((one, tenants[one]["auths"]) for one in tenants)]
            for name in reversed(names)
            if name in auths
        }
        own = found.get(tenant) or found.get("")
        if own is None:
            return "", bool(found)
        user, _, password = base64.b64decode(own["auth"]).decode().partition(":")
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{FILE} in the console's data folder cannot be read: {error}") from error
    document = {"username": user, "password": password, "serveraddress": host}
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode(), True


def _read(path: str) -> dict[str, Any]:
    try:
        with open_regular(path) as file:
            found: dict[str, Any] = json.loads(file.read(_MAX_BYTES))
    except FileNotFoundError:
        return {}
    return found


def registry_of(image: str) -> str:
    """The host of an image's registry: its first part if that has a dot or a port, as engines read it."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"


def is_local(image: str) -> bool:
    """Whether its name says that people of this machine built or loaded it. Engines look a digest up in all images."""
    return registry_of(image) == "localhost" and "@" not in image
