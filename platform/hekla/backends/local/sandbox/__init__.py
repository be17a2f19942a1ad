"""What separates a pod of this machine from the console and from other pods. Standard library only, as in the shim.

order.py      what the backend asks for: paths, user id, layers
system.py     calls of Linux that Python does not have
root.py       the mount namespace: a root file system with the pod's folders and the system's, and nothing else
seccomp.py    system calls that no pod needs
landlock.py   paths that the pod may open, checked by the kernel a second time
init.py       the first process of the pod's PID namespace
commands.py   further commands, which that process starts
probe.py      tries all layers in a process of its own, and prints what the kernel refuses
"""
