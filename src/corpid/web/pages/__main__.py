"""Compile the templates of every language: `python -m corpid.web.pages`.

As `compileall` does modules, for a program that is installed by one user and run by another. An argument names a
package with further templates and texts. docs/decisions/0036
"""

from __future__ import annotations

import sys
from datetime import UTC

from corpid.web.pages.emails import EmailRenderer
from corpid.web.pages.rendering import Renderer
from corpid.web.pages.translations import LANGUAGES

if __name__ == "__main__":
    renderer = Renderer(added="".join(sys.argv[1:2]))
    for language in LANGUAGES:
        renderer.compile(language)
    EmailRenderer(name="", timezone=UTC)
