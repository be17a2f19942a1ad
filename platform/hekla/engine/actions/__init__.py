"""The actions of a cycle, one per module. They use the session, and not each other."""
