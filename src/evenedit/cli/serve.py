"""Commands of the web app: serve it, and manage staff passwords."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import STUDY, CommandGroup, example, open_study


@click.command()
@STUDY
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 takes a free one."
)
@click.option("--production", is_flag=True, help="Refuse to start with anything left at a default; HTTPS only.")
@click.option("--proxy", help="Address of the HTTPS proxy whose forwarded headers are trusted.")
@example("evenedit serve my-study\nevenedit serve my-study --production --proxy 127.0.0.1")
def serve(study: Path, host: str, port: int, production: bool, proxy: str | None) -> None:
    """Serve the survey and the pages for staff as a web app."""
    import os
    import secrets

    from evenedit.web import server
    from evenedit.web.auth import passwords
    from evenedit.web.settings import SECRET, Setup, check_production

    loaded = open_study(study)
    secret = os.environ.get(SECRET)
    known = passwords(loaded.store)
    if production:
        check_production(secret, proxy, bool(known))
    temporary = None if production or known else secrets.token_urlsafe(9)
    setup = Setup(production, secret or secrets.token_urlsafe(32), temporary)
    if temporary:
        click.echo(f"staff sign in as 'admin' with the temporary password: {temporary}")
    server.run(loaded, setup, host, port, proxy)


@click.group(cls=CommandGroup)
@example("evenedit admin password my-study --name reviewer")
def admin() -> None:
    """Manage the staff's access to the web app."""


@admin.command()
@STUDY
@click.option("--name", default="admin", show_default=True, help="Name of the member of staff.")
@click.option("--password", prompt=True, hide_input=True, confirmation_prompt=True, help="Asked for when left out.")
@example("evenedit admin password my-study --name reviewer")
def password(study: Path, name: str, password: str) -> None:
    """Set a member of staff's password; only its hash is kept."""
    from evenedit.web.auth import set_password

    set_password(open_study(study).store, name, password)
    click.echo(f"{name} can sign in with the new password; former sessions have ended")
