"""The plugins, one module or package each. They use the session, but not each other."""
