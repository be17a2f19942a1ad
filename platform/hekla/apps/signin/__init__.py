"""Sign-in by password or link, with a second factor if the person has one. See decision 0021."""
