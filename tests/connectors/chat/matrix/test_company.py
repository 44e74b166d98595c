"""A whole company with Matrix: what it is ready for, and that it ends cleanly."""

from __future__ import annotations

from pathlib import Path

import trio

from connectors.app.app import App, open_app
from connectors.chat.platforms import serving
from connectors.settings.load import load_app

SETTINGS = """\
[store]
path = "{folder}/callboard.db"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[agents.anna]
prompt = "You are Anna."
[agents.ben]
prompt = "You are Ben."
{first}
{second}
"""

# Port 9 is for what nobody reads (RFC 863); nobody listens there.
HOMESERVER = """
[connectors.{name}]
kind = "matrix"
homeserver = "http://127.0.0.1:9"
invites = "anyone"
[connectors.{name}.access]
people = "anyone"
[connectors.{name}.accounts.anna]
user = "@anna:hs.test"
access_token = {{ env = "TOKEN" }}
[connectors.{name}.accounts.ben]
user = "@ben:hs.test"
password = {{ env = "TOKEN" }}
"""


async def test_without_its_homeservers_it_says_so_and_waits(tmp_path: Path) -> None:
    (tmp_path / "rules.toml").write_text('[default]\nreply = "hi"\n')
    path = tmp_path / "callboard.toml"
    names = ("work", "home")
    first, second = (HOMESERVER.format(name=name) for name in names)
    path.write_text(SETTINGS.format(folder=tmp_path, first=first, second=second))
    config = load_app(path, {"TOKEN": "syt_a-long-enough-token"}).value
    async with open_app(config, serving(config)) as app:
        await wait_tried(app)
        reasons = await app.readiness()
        assert [each.partition(":")[0] for each in reasons] == [
            "connector work hears nobody",
            "connector home hears nobody",
        ]
        for name in names:
            for agent in ("anna", "ben"):
                where = f"callboard/connectors/{name}/listeners/{agent}/listener"
                assert app.system.find(where) is not None


async def wait_tried(app: App) -> None:
    """Wait until every account has asked its homeserver in vain."""
    down = [
        f'callboard_matrix_up{{account="{agent}",connector="{name}"}} 0.0'
        for agent in ("anna", "ben")
        for name in ("work", "home")
    ]
    with trio.fail_after(20):
        while True:
            text = app.metrics.render().decode()
            if all(line in text for line in down):
                return
            await trio.sleep(0.01)
