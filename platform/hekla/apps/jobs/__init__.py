"""Jobs and their pods: submission, lifecycle, history."""
