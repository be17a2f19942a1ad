"""The controller: reads the rows and the reports of backends, calls the engine, and applies its decisions.

It reconciles one cluster at a time, under a lease: observe -> snapshot -> engine.cycle -> commit -> apply. It is
level-triggered: it acts on the present state, so a lost wake-up costs a second and no information.
"""
