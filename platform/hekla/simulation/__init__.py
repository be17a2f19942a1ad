"""What the engine is told of a cluster, read from the rows; and what it would do, asked of a copy.

The controller asks the engine in earnest. Pages, REST and the command line ask it here what would be if.
"""
