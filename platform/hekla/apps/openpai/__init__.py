"""OpenPAI names of jobs, and the JobConfigs that were submitted."""
