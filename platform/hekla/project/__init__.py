"""Where the parts become one product: settings, addresses, processes."""
