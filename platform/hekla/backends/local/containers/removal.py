"""End and remove the container of a pod. Standard library only, because the shim uses it."""

from urllib.parse import quote

from hekla.backends.local.containers.engine import NOT_FOUND, Engine, EngineError


def remove(path: str, container: str) -> str:
    """Remove a container of the engine at this socket, if it exists. Returns why it may still exist; else empty."""
    try:
        Engine(path).request("DELETE", f"/containers/{quote(container)}?force=true&v=true")
    except EngineError as error:
        return "" if error.status == NOT_FOUND else f"The container cannot be removed: {error}"
    except OSError as error:
        return f"The container engine does not answer: {error}"
    return ""
