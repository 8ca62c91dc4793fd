"""A package, so that its tests share one Chromium, which ends with the last of them."""
