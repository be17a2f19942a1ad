"""Pods in containers of Podman or Docker, through the API that both have (version 1.41 of Docker's).

The shim of each pod runs `attendant.py`, which pulls the image, runs the container, and copies its output. So logs,
stops, ends and restarts of the console work as for processes. `engine.py` and `attendant.py` use only the standard
library, because they start with every pod.
"""
