"""Images that browsers show without a risk, known by their first bytes and never by their name. SVG is none of them."""


def media_type(head: bytes) -> str:
    """The media type of the image that begins so; empty for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else ""
