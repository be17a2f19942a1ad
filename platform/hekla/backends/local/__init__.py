"""Pods as real processes of this machine; see the README here. Imports nothing, because every shim imports it."""
