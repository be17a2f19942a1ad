"""Pods that others made and that are placed from here: which rows are theirs."""
