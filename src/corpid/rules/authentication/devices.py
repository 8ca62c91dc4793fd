"""Browser and operating system from User-Agent, in words that the owner recognises.

Nothing is decided by it, since a User-Agent can be forged.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_CHARACTERS: Final = 512
_BROWSERS: Final = (
    (re.compile(r"\bEdg(?:e|A|iOS)?/"), "Edge"),
    (re.compile(r"\bOPR/|\bOpera\b"), "Opera"),
    (re.compile(r"\bSamsungBrowser/"), "Samsung Internet"),
    (re.compile(r"\b(?:Firefox|FxiOS)/"), "Firefox"),
    (re.compile(r"\b(?:Chrome|CriOS|Chromium|HeadlessChrome)/"), "Chrome"),
    (re.compile(r"\bVersion/\S+ .*\bSafari/"), "Safari"),
)
_SYSTEMS: Final = (
    (re.compile(r"\biPhone\b|\biPod\b"), "iPhone"),
    (re.compile(r"\biPad\b"), "iPad"),
    (re.compile(r"\bAndroid\b"), "Android"),
    (re.compile(r"\bWindows\b"), "Windows"),
    (re.compile(r"\bCrOS\b"), "ChromeOS"),
    (re.compile(r"\bMac OS X\b|\bMacintosh\b"), "macOS"),
    (re.compile(r"\bLinux\b"), "Linux"),
)
"""the first match counts, since browsers also name those that they resemble"""


def device(user_agent: str) -> str:
    """Return browser and system: `Firefox on Windows`, `Firefox`, `Windows`, or empty.

    Only names from the tables of this module are returned. Source: RFC 9110 §10.1.5
    """
    return _named(user_agent[:_CHARACTERS])


@lru_cache(maxsize=1024)
def _named(user_agent: str) -> str:
    found = [next((name for seen, name in each if seen.search(user_agent)), "") for each in (_BROWSERS, _SYSTEMS)]
    return " on ".join(name for name in found if name)
