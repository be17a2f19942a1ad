"""The event log: everything that happened, in the order of commits."""
