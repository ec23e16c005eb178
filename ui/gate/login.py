"""The login page: a form that works without a script."""

import html
import secrets
from urllib.parse import parse_qs, urlencode

from ui.gate.asgi import Header

MAX_FIELDS = 16
MAX_TEXT = 300

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tokendyno: log in</title>
<style nonce="{nonce}">
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; }}
main {{ width: min(22rem, calc(100vw - 3rem)); }}
h1 {{ font-size: 1.4rem; margin: 0; }}
p {{ margin: 0 0 1.25rem; opacity: .75; }}
label {{ display: block; margin-top: .9rem; font-size: .875rem; }}
input, button {{ box-sizing: border-box; width: 100%; min-height: 2.75rem; font: inherit; border-radius: .375rem; }}
input {{ padding: 0 .75rem; border: 1px solid #8886; background: Field; color: FieldText; }}
button {{ margin-top: 1.4rem; border: 0; background: #3156a3; color: #fff; font-weight: 600; cursor: pointer; }}
:focus-visible {{ outline: 3px solid #4269d0; outline-offset: 2px; }}
[role=alert] {{ margin: 1rem 0 0; opacity: 1; color: light-dark(#a8201a, #ff8f85); }}
</style></head><body><main>
<h1>tokendyno</h1><p>{lead}</p>
<form method="post" action="{action}">{fields}</form>
{alert}</main></body></html>
"""

_FIELDS = """
<label for="name">User</label>
<input id="name" name="name" autocomplete="username" required maxlength="64" autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required maxlength="256">
<button>Log in</button>
"""


def login_page(query: str = "", alert: str = "") -> tuple[bytes, list[Header]]:
    """The form, and the headers that belong to it. `query`: of the page to be shown afterwards, such as "run=ID"."""
    action = "login" + (f"?{html.escape(query, quote=True)}" if query else "")
    return _page("Log in to see and start runs.", action, _FIELDS, alert)


def logout_page(name: str) -> tuple[bytes, list[Header]]:
    """A button that ends a login: a link alone could be followed by an image of any page."""
    lead = f"You are logged in as {html.escape(name)}." if name else "You are logged in."
    return _page(lead, "logout", "<button>Log out</button>", "")


def _page(lead: str, action: str, fields: str, alert: str) -> tuple[bytes, list[Header]]:
    nonce = secrets.token_urlsafe(16)
    said = f'<p role="alert">{html.escape(alert)}</p>' if alert else ""
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    )
    text = _PAGE.format(nonce=nonce, lead=lead, action=action, fields=fields, alert=said)
    return text.encode(), [(b"content-security-policy", policy.encode()), (b"referrer-policy", b"same-origin")]


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a form that was sent; empty where it cannot be read."""
    try:
        found = parse_qs(body.decode("ascii"), strict_parsing=True, max_num_fields=MAX_FIELDS, errors="strict")
    except ValueError:
        return {}
    return {name: values[0] for name, values in found.items()}


def safe_query(query: bytes) -> str:
    """Of the query of a page what is kept over a login: the run or the page to be shown, and its settings."""
    try:
        found = parse_qs(query.decode("ascii"), max_num_fields=MAX_FIELDS)
    except ValueError:
        return ""
    return urlencode({name[:MAX_TEXT]: values[0][:MAX_TEXT] for name, values in found.items()})
