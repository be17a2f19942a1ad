"""The domain model: frozen, typed values and pure functions. No Django, no I/O."""
