"""The policy lab: a recorded workload runs again on the engine, in simulated time, under a changed policy or cluster.

Plain Python without a database, so that it also runs in a process of its own and on the command line.
"""
