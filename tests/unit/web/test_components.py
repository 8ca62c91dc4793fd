"""Values that components show (docs/architecture.md, "One page")."""

from __future__ import annotations

import pytest

from corpid.web.pages.rendering import value_renderer


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Marcus Lee", "<bdi>Marcus Lee</bdi>"),
        ("marcus.lee@acme.example", '<bdi class="address">marcus.<wbr>lee@<wbr>acme.<wbr>example</bdi>'),
        ("<b>@x.y", '<bdi class="address">&lt;b&gt;@<wbr>x.<wbr>y</bdi>'),
        (f"{'x' * 25}@acme.example", f"<bdi>{'x' * 25}@<wbr>acme.<wbr>example</bdi>"),
    ],
)
def test_the_line_of_an_address_breaks_after_its_signs_and_its_short_parts_stay_whole(text: str, shown: str) -> None:
    assert value_renderer(lambda _: "", {})(text) == shown  # type: ignore[arg-type, return-value]
