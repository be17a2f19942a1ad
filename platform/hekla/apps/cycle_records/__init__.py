"""Recorded scheduling cycles of clusters: what the engine got and what it decided, to be stepped through later."""
