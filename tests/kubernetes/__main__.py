"""`python -m tests.kubernetes --nodes 200`: a control plane with pretended machines to try things on, until Ctrl-C.

It prints two lines: the path of a kubeconfig for somebody who may do anything, and that of Kubernetes' own scheduler.
"""

import argparse
import signal

from tests.kubernetes.binaries import CONTROL_PLANE
from tests.kubernetes.control_plane import ControlPlane


def main() -> None:
    """Start it, say where it is, wait, and take it away."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes")
    parser.add_argument("--nodes", type=int, default=200)
    asked, programs = parser.parse_args(), CONTROL_PLANE.built()
    plane = ControlPlane(programs)
    plane.start()
    try:
        plane.add_nodes(asked.nodes)
        print(plane.home / "kubeconfig", programs / "kube-scheduler", sep="\n", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        plane.stop()


if __name__ == "__main__":
    main()
