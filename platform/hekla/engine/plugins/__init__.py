"""The voices in a cycle's decisions, one a file. They know the session and not each other."""
