"""Which credentials could pull which image, because an engine gives its images to whoever names them.

    pulled-images/<id of the image>/<hash of the credentials>   an empty file; `public` for a pull without credentials

An image without a record came from elsewhere: people of this machine loaded or built it for all. Standard library only.
"""

import hashlib
import os

FOLDER = "pulled-images"
"""In the console's data folder."""
_PUBLIC = "public"


def may_use(folder: str, image: str, credentials: str, *, is_guarded: bool) -> bool:
    """Whether these credentials, or none, have pulled the image with this id before, or nobody has.

    `is_guarded`: whether there are credentials for its registry. Then an image without a record may be private, too.
    """
    try:
        known = os.listdir(_record(folder, image))
    except FileNotFoundError:
        known = []
    return (_mark(credentials) in known or _PUBLIC in known) if known else not is_guarded


def note_pull(folder: str, image: str, credentials: str) -> None:
    """Record that these credentials could pull the image with this id."""
    record = _record(folder, image)
    os.makedirs(record, mode=0o700, exist_ok=True)
    os.close(os.open(os.path.join(record, _mark(credentials)), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _record(folder: str, image: str) -> str:
    return os.path.join(folder, hashlib.sha256(image.encode()).hexdigest())


def _mark(credentials: str) -> str:
    return hashlib.sha256(credentials.encode()).hexdigest() if credentials else _PUBLIC
