"""Pods as real processes of this machine: see the README here. Imports nothing: the shim starts through it."""
