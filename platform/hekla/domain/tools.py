"""The tools that people open in the browser, each attached to a running pod."""

from enum import StrEnum


class Tool(StrEnum):
    """`PORT`: a server that the pod's own program runs. Hekla starts the others in the pod."""

    PORT = "port"
    JUPYTERLAB = "jupyterlab"
    TENSORBOARD = "tensorboard"
    CODE_SERVER = "code-server"

    @property
    def label(self) -> str:
        """Its name for people; that of a port is its number."""
        return _LABELS.get(self, "")

    @property
    def start_path(self) -> str:
        """The path that is opened first."""
        return "/lab" if self is Tool.JUPYTERLAB else "/"


STARTED_TOOLS = (Tool.JUPYTERLAB, Tool.CODE_SERVER, Tool.TENSORBOARD)
"""The tools that Hekla starts in pods."""
_LABELS = {
    Tool.JUPYTERLAB: "JupyterLab",
    Tool.CODE_SERVER: "VS Code (code-server)",
    Tool.TENSORBOARD: "TensorBoard",
}
