"""How people come in: by password or link, and with a second factor where they have one. See decision 0021."""
