"""The developer kit, as it is installed beside this program.

Entry points are read of its distribution alone: no other package adds a command or extends a provider (D66).
"""

from __future__ import annotations

from typing import Any, Final

from corpid import __version__

DISTRIBUTION: Final = "corpid-dev"


class KitUnusable(Exception):
    """The reason why an installed developer kit cannot be used."""


def load(group: str) -> list[Any]:
    """What the kit has in a group of entry points; nothing if it is not installed.

    Raises KitUnusable.
    """
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415 - most commands do without it

    advice = f"install {DISTRIBUTION}=={__version__}"
    unreadable = f"the metadata of {DISTRIBUTION} cannot be read; {advice}"
    try:
        kit = distribution(DISTRIBUTION)
        version, found = kit.version, kit.entry_points.select(group=group)
    except PackageNotFoundError:
        return []
    except Exception as error:  # damaged metadata raise whatever their parser does
        raise KitUnusable(unreadable) from error
    if not version:  # what a removal left behind
        raise KitUnusable(unreadable)
    if version != __version__:
        raise KitUnusable(f"{DISTRIBUTION} {version} is for another version; {advice}")
    try:
        return [each.load() for each in found]
    except Exception as error:  # its modules run, and may raise anything
        raise KitUnusable(
            f"{DISTRIBUTION} {version} cannot be loaded ({type(error).__name__}: {error}); {advice}"
        ) from error
