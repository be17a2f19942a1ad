"""Templates of jobs, and flows: jobs that wait for one another."""
