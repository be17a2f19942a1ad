"""The credentials for registries of images. Standard library only."""

import base64
import json

from hekla.backends.local.pod_folder import open_regular

FILE = "registries.json"
"""In the console's data folder, in the format of Docker's `config.json`: `{"auths": {HOST: {"auth": BASE64}}}`."""
_DOCKER_HUB = ("docker.io", "index.docker.io", "https://index.docker.io/v1/")
_MAX_BYTES = 2**20


def header(path: str, image: str) -> str:
    """What the engine sends to the image's registry, base64 of a JSON document; empty without credentials for it.

    Raises ValueError if the file at `path` cannot be read.
    """
    host = registry_of(image)
    names = _DOCKER_HUB if host == "docker.io" else (host, f"https://{host}")
    try:
        with open_regular(path) as file:
            stored = json.loads(file.read(_MAX_BYTES))["auths"]
        found = next((stored[name] for name in names if name in stored), None)
        if found is None:
            return ""
        user, _, password = base64.b64decode(found["auth"]).decode().partition(":")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{FILE} in the console's data folder cannot be read: {error}") from error
    document = {"username": user, "password": password, "serveraddress": host}
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode()


def registry_of(image: str) -> str:
    """The host of an image's registry: its first part if that has a dot or a port, as engines read it."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else "docker.io"
