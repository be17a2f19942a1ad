"""Simulated pods: nodes and run times from a configuration, accelerated time, and no real processes."""
