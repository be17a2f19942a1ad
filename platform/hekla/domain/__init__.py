"""What Hekla speaks about: frozen, typed, pure. No Django, no I/O."""
