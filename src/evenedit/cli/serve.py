"""Commands of the web app: serve it, and manage the accounts of staff."""

from __future__ import annotations

import getpass
from pathlib import Path

import click

from evenedit.cli.base import STUDY, CommandGroup, example, open_study

ROLES = ("owner", "researcher", "reviewer", "curator")
ROLE = click.option("--role", type=click.Choice(ROLES), default="reviewer", show_default=True, help="What they may do.")
PASSWORD = click.option(
    "--password", prompt=True, hide_input=True, confirmation_prompt=True, help="Asked for when left out."
)


@click.command()
@STUDY
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 takes a free one."
)
@click.option("--production", is_flag=True, help="Refuse to start with anything left at a default; HTTPS only.")
@click.option("--proxy", help="Address of the HTTPS proxy whose forwarded headers are trusted.")
@click.option("--address", default="", help="What visitors open, https://…; requests for other names are refused.")
@click.option("--access-log", default="", help="File for a line of JSON per request, '-' for the output; no ids in it.")
@example(
    "evenedit serve my-study\nevenedit serve my-study --production --proxy 127.0.0.1 --address https://survey.example"
)
def serve(
    study: Path, host: str, port: int, production: bool, proxy: str | None, address: str, access_log: str
) -> None:
    """Serve the survey and the pages for staff as a web app."""
    import secrets

    from evenedit.web import server
    from evenedit.web.auth import Accounts
    from evenedit.web.settings import Setup, check_production

    loaded = open_study(study)
    known = Accounts(loaded.store).all()
    survey = loaded.file.sections.survey
    address = address or (survey.platform.origin if survey and production else "")
    if production:
        check_production(loaded.file, proxy, address, bool(known))
    temporary = None if production or known else secrets.token_urlsafe(9)
    setup = Setup(production, address, access_log=access_log, password=temporary)
    if temporary:
        click.echo(f"staff sign in as 'admin' with the temporary password: {temporary}")
    server.run(loaded, setup, host, port, proxy)


@click.group(cls=CommandGroup)
@example("evenedit admin add my-study ada --role researcher")
def admin() -> None:
    """Manage which staff can sign in to the web app, and as what."""


@admin.command()
@STUDY
@click.argument("name")
@ROLE
@PASSWORD
@example("evenedit admin add my-study ada --role researcher")
def add(study: Path, name: str, role: str, password: str) -> None:
    """Add an account of staff; only a hash of its password is kept."""
    from evenedit.web.auth import Accounts
    from evenedit.web.roles import Role

    loaded = open_study(study)
    known = Accounts(loaded.store).add(name, Role(role), password)
    _note(loaded.store.folder, f"added the account {known} ({role})")
    click.echo(f"{known} can sign in as {role}")


@admin.command()
@STUDY
@click.argument("name")
@example("evenedit admin remove my-study ada")
def remove(study: Path, name: str) -> None:
    """Remove an account and end its sessions."""
    from evenedit.web.auth import Accounts

    loaded = open_study(study)
    known = Accounts(loaded.store).remove(name)
    _note(loaded.store.folder, f"removed the account {known}")
    click.echo(f"{known} cannot sign in any more, and is signed out everywhere")


@admin.command("list")
@STUDY
@example("evenedit admin list my-study")
def list_(study: Path) -> None:
    """List the accounts of staff and their roles."""
    from evenedit.web.auth import Accounts

    accounts = Accounts(open_study(study).store).all()
    for account in accounts.values():
        click.echo(f"{account.name:24}{account.role}")
    if not accounts:
        click.echo("there are no accounts. Add one: evenedit admin add STUDY NAME --role owner")


@admin.command("role")
@STUDY
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
@example("evenedit admin role my-study ada owner")
def role_(study: Path, name: str, role: str) -> None:
    """Change what an account may do."""
    from evenedit.web.auth import Accounts
    from evenedit.web.roles import Role

    loaded = open_study(study)
    Accounts(loaded.store).set_role(name, Role(role))
    _note(loaded.store.folder, f"made {name} {role}")
    click.echo(f"{name} is {role} now")


@admin.command()
@STUDY
@click.option("--name", default="admin", show_default=True, help="Name of the account; the first one becomes owner.")
@PASSWORD
@example("evenedit admin password my-study --name ada")
def password(study: Path, name: str, password: str) -> None:
    """Set the password of an account; only its hash is kept."""
    from evenedit.web.auth import Accounts

    loaded = open_study(study)
    Accounts(loaded.store).set_password(name, password)
    _note(loaded.store.folder, f"set the password of {name}")
    click.echo(f"{name} can sign in with the new password; former sessions have ended")


def _note(folder: Path, action: str) -> None:
    from evenedit.web.audit_log import AuditLog

    AuditLog(folder).note(f"{getpass.getuser()} (command line)", action)
