"""What pages see change: renderings sent over a websocket as the event log grows, and logs as they are written."""
