"""Executes a notebook within a job, and saves it with its outputs under the same name. Needs Python only.

With nbclient and a kernel it is executed as in JupyterLab. Without them its cells run as one script, whose output is
that of the job; lines of magics and of the shell are left out then.
"""

import json
import sys


def main(path: str) -> None:
    """Execute the notebook at this path."""
    try:
        import ipykernel  # noqa: F401, PLC0415
        import nbformat  # noqa: PLC0415
        from nbclient import NotebookClient  # noqa: PLC0415
        from nbclient.exceptions import CellExecutionError  # noqa: PLC0415
    except ImportError:
        run_as_script(path)
        return
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    try:
        NotebookClient(notebook, timeout=None).execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    finally:  # the outputs until an error are worth most
        nbformat.write(notebook, path)


def run_as_script(path: str) -> None:
    """Run all code cells in one namespace, one after another."""
    with open(path, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    namespace = {"__name__": "__main__"}
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] == "code":
            text = "".join(cell["source"])
            if not text.startswith("%%"):
                lines = ("" if line.startswith(("%", "!")) else line for line in text.split("\n"))
                exec(compile("\n".join(lines), f"cell {number}", "exec"), namespace)  # noqa: S102


if __name__ == "__main__":
    main(sys.argv[1])
