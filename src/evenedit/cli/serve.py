"""Commands of the web app: serve it, and manage staff accounts."""

from __future__ import annotations

import getpass
from pathlib import Path

import click

from evenedit.cli.base import STUDY, CommandGroup, example, open_study

ROLES = ("owner", "researcher", "reviewer", "curator")


@click.command()
@STUDY
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 chooses a free one."
)
@click.option("--production", is_flag=True, help="Refuse to start with insecure defaults; HTTPS only.")
@click.option("--proxy", help="Address of the HTTPS proxy whose forwarded headers are trusted.")
@click.option(
    "--address", default="", help="Address that visitors open, https://…; requests for other hosts are refused."
)
@click.option(
    "--access-log", default="", help="File for one line of JSON per request, '-' for standard output; without ids."
)
@example(
    "evenedit serve my-study\nevenedit serve my-study --production --proxy 127.0.0.1 --address https://survey.example"
)
def serve(
    study: Path, host: str, port: int, production: bool, proxy: str | None, address: str, access_log: str
) -> None:
    """Serve the survey and the staff pages as a web app."""
    import secrets

    from evenedit.web import server
    from evenedit.web.auth import Accounts
    from evenedit.web.settings import ServerSettings, check_production

    loaded = open_study(study)
    accounts = Accounts(loaded.store).all()
    survey = loaded.file.sections.survey
    address = address or (survey.platform.origin if survey and production else "")
    if production:
        check_production(loaded.file, proxy, address, bool(accounts))
    temporary = None if production or accounts else secrets.token_urlsafe(9)
    setup = ServerSettings(production, address, access_log=access_log, password=temporary)
    if temporary:
        click.echo(f"staff sign in as 'admin' with the temporary password: {temporary}")
    server.run(loaded, setup, host, port, proxy)


@click.group(cls=CommandGroup)
@example("evenedit admin my-study\nevenedit admin add my-study ada --role researcher")
def admin() -> None:
    """Manage staff accounts of the web app.

    `evenedit admin STUDY` lists the accounts of a study.
    """


@click.command("list")
@STUDY
def list_accounts(study: Path) -> None:
    """List the staff accounts and their roles."""
    from evenedit.web.auth import Accounts

    accounts = Accounts(open_study(study).store).all()
    for account in accounts.values():
        click.echo(f"{account.name:24}{account.role}")
    if not accounts:
        click.echo("there are no accounts. Add one: evenedit admin add STUDY NAME --role owner")


admin.default = list_accounts


@admin.command()
@STUDY
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), help="Permissions of the account; default: reviewer.")
@click.option("--password", help="Password; you are asked for it if this option is missing.")
@click.option("--replace", is_flag=True, help="Change an existing account: its role, its password, or both.")
@example("evenedit admin add my-study ada --role researcher\nevenedit admin add my-study ada --replace")
def add(study: Path, name: str, role: str | None, password: str | None, replace: bool) -> None:
    """Add an account; only a hash of its password is stored.

    With --replace and --role, the password changes only if --password is given. A new password ends all sessions.
    """
    from evenedit.web.auth import Accounts
    from evenedit.web.roles import Role

    loaded = open_study(study)
    accounts = Accounts(loaded.store)
    if replace:
        accounts.require(name)
    if password is None and not (replace and role):
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    if not replace:
        assert password is not None
        account = accounts.add(name, Role(role or "reviewer"), password)
        _note(loaded.store.folder, f"added the account {account} ({role or 'reviewer'})")
        click.echo(f"{account} can sign in as {role or 'reviewer'}")
    if replace and role:
        accounts.set_role(name, Role(role))
        _note(loaded.store.folder, f"changed the role of {name} to {role}")
        click.echo(f"{name} is now {role}")
    if replace and password:
        accounts.set_password(name, password)
        _note(loaded.store.folder, f"set the password of {name}")
        click.echo(f"{name} can sign in with the new password; previous sessions have ended")


@admin.command()
@STUDY
@click.argument("name")
@example("evenedit admin remove my-study ada")
def remove(study: Path, name: str) -> None:
    """Remove an account and end its sessions."""
    from evenedit.web.auth import Accounts

    loaded = open_study(study)
    account = Accounts(loaded.store).remove(name)
    _note(loaded.store.folder, f"removed the account {account}")
    click.echo(f"{account} can no longer sign in and is signed out everywhere")


def _note(folder: Path, action: str) -> None:
    from evenedit.web.audit_log import AuditLog

    AuditLog(folder).note(f"{getpass.getuser()} (command line)", action)
