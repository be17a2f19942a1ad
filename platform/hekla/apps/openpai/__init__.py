"""What people who come from OpenPAI call their jobs, and the JobConfigs that they sent."""
