"""What pods use while they run, measured again and again: kept finely for an hour, more and more coarsely after."""
