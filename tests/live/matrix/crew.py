"""Three agents and two people on a real homeserver, and the company that runs them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
import trio

from tests.live.matrix.synapse import PLAIN, Account, Room, Synapse, wait_until
from tests.processes.running import Server, served

SETTINGS = """
[agents.cleo]
prompt = "You are Cleo."

[connectors.matrix]
kind = "matrix"
homeserver = "{url}"
invites = "listed"
invite_from = ["@zoe:cb.test"]

[connectors.matrix.access]
people = "anyone"

[connectors.matrix.accounts.anna]
user = "@anna:cb.test"
access_token = {{ env = "TOKEN_OF_ANNA" }}

[connectors.matrix.accounts.ben]
user = "@ben:cb.test"
access_token = {{ env = "TOKEN_OF_BEN" }}

[connectors.matrix.accounts.cleo]
user = "@cleo:cb.test"
password = {{ env = "PASSWORD_OF_CLEO" }}
"""


QUIET = """
[presence.connectors.matrix]
drafts = false
reactions = false
"""
"""Neither edits nor signs: what is said is said once."""

# In a group the model is told first what it has overheard: the words stand at the end.
SCRIPT = r"""
[default]
reply = "what?"

[[rule]]
agent = "ben"
pattern = 'work out (?P<sum>[\d+]+)\s*\Z'
tool = [{ name = "calculate", arguments = { expression = "{sum}" } }]

[[rule]]
agent = "ben"
pattern = 'ponder (?P<sum>[\d+]+)\s*\Z'
tool = [{ name = "calculate", arguments = { expression = "{sum}" } }]
delay = 5

[[rule]]
on_tool = "calculate"
reply = "{0}"

[[rule]]
pattern = 'sum (?P<sum>[\d+]+)\s*\Z'
reply = "That is one for Ben."
delegate = { agent = "ben", task = "work out {sum}" }

[[rule]]
pattern = 'slowly (?P<words>[^\n]+)\Z'
reply = "{words}"
word_delay = 0.1

[[rule]]
pattern = 'later (?P<words>[^\n]+)\Z'
reply = "{words}"
delay = 0.5

[[rule]]
pattern = '(?s).*echo (?P<words>[^\n]+)'
reply = "{words}"
"""


class Crew:
    """Who is there.

    Args:
        synapse: where; it runs.
    """

    def __init__(self, synapse: Synapse) -> None:
        self.synapse = synapse
        self._admin = synapse.register("admin", is_admin=True)
        self.zoe, self.sam = synapse.register("zoe"), synapse.register("sam")
        self.anna, self.ben = synapse.register("anna"), synapse.register("ben")
        self.cleo = synapse.register("cleo")
        self.agents = (self.anna, self.ben, self.cleo)

    async def lift_limits(self) -> None:
        """Let all but Cleo say as much as they like; hers are Synapse's own."""
        for each in (self.zoe, self.sam, self.anna, self.ben):
            await each.lift_limits(self._admin)

    @contextmanager
    def served(
        self, folder: Path, *, ben: str = "", shown: str = QUIET
    ) -> Generator[Server]:
        """Run the company during the block, until its accounts listen.

        Args:
            folder: its current directory; one that was used before is gone on with.
            ben: another token for Ben than his own.
            shown: what of the making of answers is shown.
        """
        with served(
            folder,
            more=SETTINGS.format(url=self.synapse.url) + shown,
            script=SCRIPT,
            TOKEN_OF_ANNA=self.anna.token,
            TOKEN_OF_BEN=ben or self.ben.token,
            PASSWORD_OF_CLEO=self.cleo.password,
        ) as server:
            yield server


async def wait_in_step(server: Server, count: int = 3) -> None:
    """Wait until so many accounts hear their homeserver."""
    await wait_until(
        lambda: figure(server, "callboard_matrix_up"), lambda up: up >= count
    )


async def figure(server: Server, name: str, *words: str) -> float:
    """Add up the figures of a name whose labels hold all these words."""
    async with httpx.AsyncClient(verify=PLAIN) as client:
        text = (await client.get(f"{server.url}/metrics")).text
    found = (line for line in text.splitlines() if line.startswith(f"{name}{{"))
    return sum(
        float(line.split()[-1]) for line in found if all(word in line for word in words)
    )


async def wait_typing(crew: Crew, room: Room, who: Account) -> None:
    """Wait until somebody in a room is shown to be writing."""
    path = "/sync?timeout=5000"
    batch = await crew.zoe.client("GET", "/sync")
    with trio.fail_after(30):
        while True:
            news = batch["rooms"].get("join", {}).get(room.id, {})
            shown = news.get("ephemeral", {}).get("events", [])
            typing = [each for each in shown if each["type"] == "m.typing"]
            if any(each["content"]["user_ids"] == [who.user] for each in typing):
                return
            since = batch["next_batch"]
            batch = await crew.zoe.client("GET", f"{path}&since={since}")


async def asked_in_mid_answer(crew: Crew, agent: Account, *words: str) -> Room:
    """Have somebody ask one thing, and others while it is being answered."""
    room = await crew.zoe.room(*crew.agents)
    await room.wait_joined(*crew.agents)
    first, *others = words
    name = agent.user[1:].partition(":")[0]
    await room.say(f"@{name} {first}")
    await wait_typing(crew, room, agent)
    for each in others:
        await room.say(f"@{name} {each}")
    return room
