"""The event log: what happened, in the order in which it became true."""
