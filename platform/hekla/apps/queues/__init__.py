"""Queues: shares of a cluster that jobs are submitted to."""
