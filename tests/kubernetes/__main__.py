"""`python -m tests.kubernetes --nodes 200`: a control plane with simulated nodes, for experiments, until Ctrl-C.

It prints two lines: the path of an administrator's kubeconfig, and the path of Kubernetes' own scheduler.
"""

import argparse
import signal

from tests.kubernetes.binaries import CONTROL_PLANE
from tests.kubernetes.control_plane import ControlPlane


def main() -> None:
    """Start the control plane, print the paths, wait, and remove it."""
    parser = argparse.ArgumentParser(prog="python -m tests.kubernetes")
    parser.add_argument("--nodes", type=int, default=200)
    options, programs = parser.parse_args(), CONTROL_PLANE.built()
    plane = ControlPlane(programs)
    plane.start()
    try:
        plane.add_nodes(options.nodes)
        print(plane.home / "kubeconfig", programs / "kube-scheduler", sep="\n", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        plane.stop()


if __name__ == "__main__":
    main()
