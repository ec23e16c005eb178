"""`tokendyno open` and `users`: the page in a browser, and who may log in where it is served to others."""

import argparse
import getpass
import os
import sys
import webbrowser

from tokendyno import app
from tokendyno.backend.cli.files import typed_path
from tokendyno.backend.cli.options import Add
from tokendyno.backend.cli.progress import say
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.users import MAX_PASSWORD, Users
from tokendyno.backend.paths import default_users
from tokendyno.backend.units import plural

ACTIONS = ("list", "add", "remove", "token", "revoke")


def open_page(options: argparse.Namespace) -> int:
    settings = app.options_of(options, os.environ)
    return app.serve(settings) if options.no_browser else app.serve(settings, _show)


def _show(address: str) -> None:
    """Open a browser, where there is a display: without one it would be a text browser in this terminal."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)


def users(options: argparse.Namespace) -> int:
    accounts = Users(options.users)
    action, name = options.action, options.name or ""
    if action == "list" and name:
        raise InputError("`tokendyno users list` takes no name. Leave it out.")
    if action != "list" and not name:
        raise InputError(f"Whose? Name the user: tokendyno users {action} NAME.")
    match action:
        case "list":
            for user in accounts.names():
                print(user)
        case "add":
            accounts.add(name, _password())
            say(f"{name} can log in, with the users of {accounts.path}.")
        case "remove":
            accounts.remove(name)
            say(f"{name} can no longer log in.")
        case "token":
            print(accounts.new_token(name))
            say(f"This token is shown only once. A program of {name} sends it as Authorization: Bearer TOKEN.")
        case "revoke":
            say(f"{plural(accounts.revoke(name), 'token')} of {name} revoked: {name} must log in again.")
    return 0


def _password() -> str:
    """From the terminal, twice and unseen; without one the first line of standard input."""
    if not sys.stdin.isatty():
        return sys.stdin.readline(MAX_PASSWORD + 2).rstrip("\n")
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise InputError("The two passwords differ. Try again.")
    return password


def add_commands(add: Add) -> None:
    sub = add("open", open_page, "serve the page and open it in a browser, until Ctrl-C")
    app.add_options(sub, os.environ)
    sub.add_argument("--no-browser", action="store_true", help="only serve the page, and print its address")
    sub = add("users", users, "who may log in where the page is served to others: list, add, remove, token, revoke")
    sub.add_argument("action", choices=ACTIONS, metavar="ACTION", help=", ".join(ACTIONS))
    sub.add_argument("name", nargs="?", metavar="NAME", help="the user")
    sub.add_argument(
        "--users",
        type=typed_path,
        default=os.environ.get("TOKENDYNO_USERS") or default_users(),
        metavar="FILE",
        help="the file of users (TOKENDYNO_USERS)",
    )
