"""Where pods run. Each backend is a package of its own behind the one contract of `base`."""
