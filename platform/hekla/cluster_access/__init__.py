"""Access to clusters: parse credentials, check a cluster before it is saved, describe its health.

Pages and REST share this code, so both do the same checks.
"""
