"""`hekla bench`: measures the speed of Hekla on this machine."""
