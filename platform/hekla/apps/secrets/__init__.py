"""Values that the commands of jobs need and that nobody is shown."""
