"""The plugins, one module or package each. They use the session, and not each other."""
