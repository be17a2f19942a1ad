"""The controller: reads what people want and what backends report, asks the engine, carries its decisions out.

One turn of one cluster, under a lease: observe -> snapshot -> engine.cycle -> commit -> carry out. A turn is
level-triggered: it looks at what is so now, so a wake-up that is lost costs a second and never a fact.
"""
