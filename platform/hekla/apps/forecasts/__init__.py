"""Forecasts of the start times of jobs, and their accuracy. Derived data: it can be deleted, and builds up again."""
