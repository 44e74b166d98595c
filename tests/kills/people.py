"""People who write numbered messages and write each again until it was taken.

Each message carries an idempotency key, so that saying it again after a connection
broke is safe; what comes back tells whether it was acknowledged. Half of them are
answered in a stream: its first words tell that the message is taken, long before the
answer is stored.
"""

from __future__ import annotations

import msgspec
import trio

from tests.kills.servers import Server, Servers
from tests.kills.wire import HttpMessage, request

AT_ONCE = 2
"""Messages of one conversation that are under way together."""

KEPT = b"the message is kept"
"""What a server says that ends before it has answered."""

UNKNOWN = "nobody knows whether this was done"

PAUSE = 0.02
"""Seconds until a message is written again."""


class Said(msgspec.Struct):
    """One message, and what came of it."""

    chat: str
    number: int
    tries: int = 0
    is_acknowledged: bool = False
    """Somebody was told that it is taken."""

    is_done: bool = False
    """Nobody says it again."""

    answers: list[tuple[int, str]] = []
    """Each whole answer: number of the process, words."""

    refusals: list[int] = []
    """The status of each answer that was none."""

    @property
    def words(self) -> str:
        """What is written; every fourth message makes the agent use a tool."""
        if self.number % 4 == 3:
            return f"sum {self.number} + 1000"
        return f"word {self.number} in {self.chat}"

    @property
    def right_answer(self) -> str:
        """What the agent must say."""
        if self.number % 4 == 3:
            return f"{self.number} + 1000 = {self.number + 1000}"
        return f"you said {self.words}"

    def is_right(self, answer: str) -> bool:
        """Tell whether an answer is one that may be given.

        A call that was cut off is not made again, unless the tool says that it may be:
        then the agent is told that nobody knows, and says so.
        """
        return answer == self.right_answer or (
            self.words.startswith("sum ") and UNKNOWN in answer
        )

    @property
    def is_live(self) -> bool:
        """Whether the answer is streamed: then its first words acknowledge it.

        Whoever has seen those does not ask again, so that nobody but the server can
        keep the message from being lost.
        """
        return self.number % 2 == 0


class Reply(msgspec.Struct):
    """What is read of a completion."""

    choices: list[Choice]


class Choice(msgspec.Struct):
    """One choice of a completion."""

    message: Words


class Words(msgspec.Struct):
    """The words of a choice."""

    content: str


class Event(msgspec.Struct):
    """What is read of a piece of a stream."""

    choices: list[Piece] = []


class Piece(msgspec.Struct):
    """One choice of a piece."""

    delta: Added


class Added(msgspec.Struct):
    """The words that a piece adds."""

    content: str = ""


class Conversation:
    """One chat: messages in order, a few under way at once.

    Args:
        chat: its name.
        servers: whom to talk to.
    """

    def __init__(self, chat: str, servers: Servers) -> None:
        self.chat = chat
        self.said: list[Said] = []
        self._servers = servers
        self._is_over = False

    def end(self) -> None:
        """Say nothing new; what was begun goes on until it is taken."""
        self._is_over = True

    async def talk(self) -> None:
        """Say one thing after the other until told to end."""
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._say_more)

    async def _say_more(self) -> None:
        while not self._is_over:
            message = Said(self.chat, len(self.said))
            self.said.append(message)
            while not message.is_done:
                server = await self._servers.wait_up()
                await say(message, server)
                if not message.is_done:
                    await server.wait_gone(PAUSE)


async def say(message: Said, server: Server) -> None:
    """Say a message once, and note what came of it."""
    message.tries += 1
    line = {"role": "user", "content": message.words}
    body = {"model": "anna", "messages": [line], "stream": message.is_live}
    answer = await request(
        server.address,
        "POST /v1/chat/completions",
        {
            "content-type": "application/json",
            "x-callboard-conversation": message.chat,
            "idempotency-key": f"{message.chat}-{message.number}",
        },
        msgspec.json.encode(body),
    )
    if answer is not None:
        hear(message, answer, server.number)


def hear(message: Said, answer: HttpMessage, process: int) -> None:
    """Note what an answer, whole or not, says of a message."""
    if answer.status != 200:
        message.refusals.append(answer.status)
        message.is_acknowledged |= KEPT in answer.body
        return
    message.is_acknowledged = True
    message.is_done = answer.is_whole or message.is_live
    if answer.is_whole:
        words = words_of_stream if message.is_live else words_of_reply
        message.answers.append((process, words(answer.body)))


def words_of_reply(body: bytes) -> str:
    """Read the words of a whole answer."""
    return msgspec.json.decode(body, type=Reply).choices[0].message.content


def words_of_stream(body: bytes) -> str:
    """Read the words of a streamed answer that has ended; HTTP's chunks stay in."""
    lines = [line for line in body.splitlines() if line.startswith(b"data: {")]
    events = [msgspec.json.decode(line[6:], type=Event) for line in lines]
    return "".join(each.delta.content for event in events for each in event.choices)
