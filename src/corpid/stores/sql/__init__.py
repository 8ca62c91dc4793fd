"""Both stores on a SQL database; `open` opens them."""
