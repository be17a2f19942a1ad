"""Backends run pods. Each is a package that implements the contract in `base`."""
