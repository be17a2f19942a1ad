"""The name of a browser, as its owner would say it. What it says of itself is a hint, and no proof."""

# In this order: most browsers also claim to be those further down.
_BROWSERS = ("Edg", "OPR", "Firefox", "Chrome", "Safari", "curl", "python")
_NAMES = {"Edg": "Edge", "OPR": "Opera", "python": "Python"}
_SYSTEMS = ("Android", "iPhone", "iPad", "Windows", "Mac OS X", "Linux")


def name(user_agent: str) -> str:
    """Such as “Firefox, Linux”; empty where nothing is known."""
    browser = next((_NAMES.get(mark, mark) for mark in _BROWSERS if mark in user_agent), "")
    system = next((mark for mark in _SYSTEMS if mark in user_agent), "")
    return ", ".join(filter(None, (browser, system)))
