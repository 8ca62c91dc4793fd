"""How well the colours of the pages stand out from each other (WCAG 2.2, 1.4.3 and 1.4.11)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TEXT_RATIO: Final = 4.5
"""least contrast of text (WCAG 2.2, 1.4.3); CorpID's own colours have 7"""
EDGE_RATIO: Final = 3.0
"""least contrast of the edges of controls (WCAG 2.2, 1.4.11)"""
TEXTS: Final = (
    *((ink, ground) for ink in ("text", "muted", "accent", "accent-strong") for ground in ("page", "surface", "quiet")),
    *((ink, "chosen") for ink in ("text", "muted", "accent-strong")),
    ("on-accent", "accent"),
    ("on-accent", "accent-strong"),
    ("error", "surface"),
    ("error", "error-quiet"),
    ("text", "error-quiet"),
    ("on-notice", "notice"),
)
"""the variable of a text, and that of what it stands on"""
EDGES: Final = (
    *(("edge", ground) for ground in ("page", "surface", "quiet")),
    ("accent", "surface"),
    ("error", "surface"),
    ("notice-edge", "notice"),
    ("focus", "focus-edge"),
)
_BLOCK: Final = re.compile(r":root \{(.*?)\n *\}", re.DOTALL)
_COLOUR: Final = re.compile(r"--([a-z-]+): (#[0-9a-f]{6});")


def palettes(style_sheet: str) -> tuple[dict[str, str], dict[str, str]]:
    """The colours of style.css, light and dark: variable → `#rrggbb` (DESIGN "Pages")."""
    light, dark = (dict(_COLOUR.findall(block)) for block in _BLOCK.findall(style_sheet)[:2])
    return light, dark


def luminance(colour: str) -> float:
    """The relative luminance, 0..1, of `#rrggbb`. Source: WCAG 2.2, 1.4.3"""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast, 1..21, of two colours `#rrggbb`. Source: WCAG 2.2, 1.4.3"""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def faint(palette: Mapping[str, str]) -> Iterator[str]:
    """A sentence about each pair of colours that is not told apart well enough. Source: WCAG 2.2, 1.4.3, 1.4.11"""
    for pairs, least in ((TEXTS, TEXT_RATIO), (EDGES, EDGE_RATIO)):
        for ink, ground in pairs:
            found = contrast(palette[ink], palette[ground])
            if found < least:
                yield f"{ink} {palette[ink]} on {ground} {palette[ground]} has a contrast of {found:.1f}, less than {least:g}"
