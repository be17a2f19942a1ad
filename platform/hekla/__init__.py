"""Hekla: a console and batch platform for machines that many AI teams share."""

__version__ = "0.1.0"
