"""The state of the console itself, for operators: messages, leases, readers of the event log, versions, database."""
