"""OpenPAI's REST API, so that its clients work with Hekla after changing only the server URL."""
