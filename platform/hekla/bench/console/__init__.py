"""Measures a whole console with many jobs. `hekla bench console` runs this in a separate process.

It uses separate servers and a separate database in a temporary folder, and touches no other console.
"""
