"""The backend `kubernetes`: pods of a real cluster, placed by Hekla's engine or by Volcano."""
