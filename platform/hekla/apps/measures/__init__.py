"""Measures: GPU time by node and by holder. Derived data: it can be deleted, and is rebuilt from log and rows."""
