"""Secrets: values that the commands of jobs need and that no page shows."""
