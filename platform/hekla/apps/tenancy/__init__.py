"""Tenants: the teams that share the machines, and their members."""
