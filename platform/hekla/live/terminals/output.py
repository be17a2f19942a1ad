"""The last part of what a terminal printed, by byte offset."""


class RollingOutput:
    """Bytes from `begin` to `end`, both counted from the first byte ever. Old ones go when there are too many."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._data = bytearray()
        self.begin = 0

    @property
    def end(self) -> int:
        """The number of bytes so far."""
        return self.begin + len(self._data)

    def append(self, data: bytes) -> None:
        """Add new bytes. The oldest are dropped a quarter at a time, so that a byte is rarely moved."""
        self._data += data
        if len(self._data) > self._most_bytes:
            surplus = len(self._data) - self._most_bytes * 3 // 4
            del self._data[:surplus]
            self.begin += surplus

    def read(self, offset: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes, and the offset of the first: `offset`, or a later one if its byte is gone."""
        begin = min(max(offset, self.begin), self.end)
        return begin, bytes(self._data[begin - self.begin : begin - self.begin + limit])
