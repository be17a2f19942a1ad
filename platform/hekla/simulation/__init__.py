"""Predictions: what the engine would decide about a cluster, computed on a copy.

The controller runs the engine for real. Pages, REST and the command line ask here what would happen.
"""
