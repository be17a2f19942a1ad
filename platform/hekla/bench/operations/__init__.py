"""Measures the dashboards of operations. `hekla bench operations` runs this in a separate process.

It uses separate servers and a separate database in a temporary folder, and touches no other console.
"""
