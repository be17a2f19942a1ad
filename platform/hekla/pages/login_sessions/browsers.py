"""A readable name of a browser, from its user agent, which is a hint and no proof."""

# The order matters: the user agents of most browsers also name those further down.
_BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl", "python")
_NAMES = {"Edg": "Edge", "OPR": "Opera", "python": "Python"}
_SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")


def name(user_agent: str) -> str:
    """The browser and system, for example “Firefox, Linux”; empty if neither is known."""
    browser = next((_NAMES.get(mark, mark) for mark in _BROWSERS if mark in user_agent), "")
    system = next((mark for mark in _SYSTEMS if mark in user_agent), "")
    return ", ".join(filter(None, (browser, system)))
