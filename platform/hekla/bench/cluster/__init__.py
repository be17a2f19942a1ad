"""How fast pods come to be bound on a Kubernetes cluster: what `hekla bench cluster` runs in a process of its own.

The cluster should be one that is there for it, with machines that only pretend to run pods. The same pods are bound by
Hekla, by a binder that has no logic, which is as fast as the API server lets anybody be, and by Kubernetes' own
scheduler, one after another and over again. Who is measured does not measure: a process of its own watches the pods.
"""
