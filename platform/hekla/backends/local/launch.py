"""The script that becomes a pod's shim: `python -I -S launch.py POD_FOLDER`.

It detaches before it imports anything else: it has its own session, and a parent that has already ended. So neither the
end of the process that started it nor a signal to that process's group or tree affects it.
"""

import os
import sys

if __name__ == "__main__":
    os.setsid()
    if os.fork():
        os._exit(0)
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3)))
    from hekla.backends.local.pod_folder import ShimOrder
    from hekla.backends.local.shim import Shim, main

    def shim_of(order: ShimOrder) -> type[Shim]:
        """The shim for a process, or for a container."""
        if not order["container"]:
            return Shim
        from hekla.backends.local.containers.container_shim import ContainerShim  # noqa: PLC0415  (not for processes)

        return ContainerShim

    main(sys.argv[1], shim_of)
