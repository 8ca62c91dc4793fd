"""Pages: layout, rendering, translations, themes, errors."""
