"""How clusters are reached: keys as people give them, tried before they are saved, and how a cluster is.

Pages and REST both ask here, so that both check the same.
"""
