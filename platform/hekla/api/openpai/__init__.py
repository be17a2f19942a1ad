"""OpenPAI's REST addresses and shapes, so that its clients work here when only their address is changed."""
