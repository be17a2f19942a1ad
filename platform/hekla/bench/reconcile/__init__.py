"""Measures reconciliations of a large simulated cluster: real rows in PostgreSQL, the real controller and engine.

It runs in a process of its own, with its own servers and database (see `hekla.bench.servers`).
"""
