"""How different two colours look, also to people who lack one kind of cones.

Simulation by Machado, Oliveira and Fernandes (2009) for complete deficiency, on linear RGB. Distances are CIEDE2000: 1
is hardly visible, 10 is clear at a glance.
"""

import math
from collections.abc import Sequence

Triple = tuple[float, float, float]
VISIONS: dict[str, Sequence[Triple]] = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
_TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
_WHITE = (0.95047, 1.0, 1.08883)


def distance(one: str, other: str, vision: str = "usual") -> float:
    """CIEDE2000 between two colours (`#rrggbb`) as a person with this vision sees them."""
    return distance_of_labs(_lab(one, VISIONS[vision]), _lab(other, VISIONS[vision]))


def _times(matrix: Sequence[Triple], vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def _lab(colour: str, vision: Sequence[Triple]) -> Triple:
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in values]
    simulated = [min(max(value, 0.0), 1.0) for value in _times(vision, linear)]
    x, y, z = (_f(value / white) for value, white in zip(_times(_TO_XYZ, simulated), _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _f(t: float) -> float:
    return t ** (1 / 3) if t > (6 / 29) ** 3 else t / (3 * (6 / 29) ** 2) + 4 / 29


def distance_of_labs(one: Triple, other: Triple) -> float:
    """CIEDE2000 between two colours in CIELAB."""
    chroma = (math.hypot(one[1], one[2]) + math.hypot(other[1], other[2])) / 2
    grey = 0.5 * (1 - math.sqrt(chroma**7 / (chroma**7 + 25**7)))
    (l1, c1, h1), (l2, c2, h2) = (_polar(lab, 1 + grey) for lab in (one, other))
    turn = 0.0 if not c1 * c2 else (h2 - h1 + 540) % 360 - 180
    d_hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2))
    light, c = (l1 + l2) / 2, (c1 + c2) / 2
    hue = h1 + h2 if not c1 * c2 else h1 + turn / 2
    t = (
        1
        - 0.17 * math.cos(math.radians(hue - 30))
        + 0.24 * math.cos(math.radians(2 * hue))
        + 0.32 * math.cos(math.radians(3 * hue + 6))
        - 0.20 * math.cos(math.radians(4 * hue - 63))
    )
    s_light = 1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2)
    s_c, s_hue = 1 + 0.045 * c, 1 + 0.015 * c * t
    spread = 30 * math.exp(-((((hue % 360) - 275) / 25) ** 2))
    mix = -2 * math.sqrt(c**7 / (c**7 + 25**7)) * math.sin(math.radians(2 * spread))
    parts = ((l2 - l1) / s_light, (c2 - c1) / s_c, d_hue / s_hue)
    return math.sqrt(sum(part * part for part in parts) + mix * parts[1] * parts[2])


def _polar(lab: Triple, stretch: float) -> Triple:
    light, a, b = lab[0], lab[1] * stretch, lab[2]
    return light, math.hypot(a, b), math.degrees(math.atan2(b, a)) % 360
