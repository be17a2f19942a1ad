"""Resource use of running pods, sampled regularly: at full resolution for an hour, coarser with age."""
