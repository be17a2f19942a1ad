"""The steps of a cycle, one a file. They know the session and not each other."""
