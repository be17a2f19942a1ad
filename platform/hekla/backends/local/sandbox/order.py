"""What the backend asks the shim to apply to a pod."""

from typing import NotRequired, TypedDict

READ_ONLY, WRITABLE, HIDDEN = "read-only", "writable", "hidden"
NAMESPACES, SECCOMP, LANDLOCK = "namespaces", "seccomp", "landlock"
LAYERS = (NAMESPACES, SECCOMP, LANDLOCK)


class SandboxOrder(TypedDict):
    """The sandbox of one pod.

    `paths`: a mode, a path of the machine, and the path at which the pod finds it; mounted in this order, so that a
    later one can lie within an earlier one. `hidden_devices`: files of /dev that the pod does not find. `root`: an
    empty folder on which the root file system is mounted. `uid`: the user and group id of the pod; 0 for those of the
    console. `layers`: those that the kernel offers; a start fails if one of them does.
    """

    paths: list[tuple[str, str, str]]
    hidden_devices: NotRequired[list[str]]
    root: str
    uid: int
    layers: list[str]
