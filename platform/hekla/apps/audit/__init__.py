"""The audit log: who did what to which object, when, and what changed. From the events whose actor is a person."""
