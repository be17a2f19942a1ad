"""A whole console full of jobs, measured: what `hekla bench console` runs in a process of its own.

It has servers and rows of its own in a folder that goes with it, so no console that people use is touched.
"""
