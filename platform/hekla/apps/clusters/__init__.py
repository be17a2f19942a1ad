"""Clusters: where pods run; their nodes, policies, leases and environments."""
