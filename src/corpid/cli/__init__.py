"""The command `corpid`: one file per noun."""

from __future__ import annotations

import typer

from corpid import __version__
from corpid.cli import audit, client, entity, key, maintenance, user
from corpid.cli.after_restore import after_restore
from corpid.cli.apply import apply, export
from corpid.cli.backup import backup, restore
from corpid.cli.demo import demo
from corpid.cli.doctor import doctor
from corpid.cli.migrate import migrate
from corpid.cli.prune import prune
from corpid.cli.serve import serve

app = typer.Typer(
    help="An OpenID Provider for people who act for organisations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

for command in (demo, serve, migrate, apply, export, backup, restore, doctor):
    app.command()(command)
for name, commands in (
    ("client", client.app),
    ("user", user.app),
    ("entity", entity.app),
    ("key", key.app),
    ("maintenance", maintenance.app),
    ("audit", audit.app),
):
    app.add_typer(commands, name=name)
maintenance.app.command()(prune)
maintenance.app.command()(after_restore)


@app.command()
def version() -> None:
    """Print the version."""
    print(__version__)


def main() -> None:
    """The entry point of the command line."""
    app()
