"""The actions of a cycle, one per module. They use the session, but not each other."""
