"""Measures the bind rate on a Kubernetes cluster. `hekla bench cluster` runs this in a separate process.

Use a dedicated cluster with simulated nodes. Hekla, a binder without logic (the maximum that the API server permits)
and kube-scheduler bind the same pods in turn, repeatedly. A separate process watches the pods, so no scheduler
measures itself.
"""
