"""Bounds for each person on what runs, waits and is open in this web process, checked before Django gets a request.

The bounds count in memory: threads, connections and sockets belong to a process, and a count dies with its process.
"""
