"""When jobs were foretold to start, and how well that held. Derived: it can be thrown away and begins anew."""
