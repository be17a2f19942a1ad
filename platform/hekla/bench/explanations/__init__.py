"""`hekla bench explanations`: whether offered changes start jobs, and whether predicted ranges hold.

The real engine decides, in simulated time and without a database: rows are never saved.
"""
