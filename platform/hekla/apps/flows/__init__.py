"""Templates of jobs, and flows: jobs with dependencies."""
