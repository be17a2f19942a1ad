"""The backend `kubernetes`: pods of a real cluster, placed by Hekla's engine and bound by this console."""
