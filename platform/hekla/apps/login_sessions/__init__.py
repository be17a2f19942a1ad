"""Visits: the browsers in which people are signed in, and ending them."""
