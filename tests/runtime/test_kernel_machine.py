"""Proves the kernel's promises for random lives of actors that do all sorts of harm.

A program tells, asks, interrupts, kills, crashes and stops supervised actors while
their handlers suspend or not, raise, stash, put off answers, ignore cancellation and
deadlines, and act against themselves in their hooks. When all is quiet, every message
must have had its fates, and no more.

As many steps as wanted, from any seed, here a million from the seventh:

    python -m tests.runtime.test_kernel_machine 1000000 7
"""

from __future__ import annotations

import logging
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from random import Random  # noqa: TID251  a seeded one, for each life
from types import TracebackType
from typing import Any, ClassVar

import pykka
import trio
import trio.testing

from runtime.actor.actor import Actor
from runtime.actor.dead_letters import DeadLetter
from runtime.actor.mailbox import MailboxConfig
from runtime.actor.messages import Terminated
from runtime.actor.ref import ActorRef
from runtime.errors import MailboxFullError, MisuseError
from runtime.supervision.child import ChildSpec
from runtime.supervision.restarts import Backoff
from runtime.supervision.supervisor import StartChild, Supervisor, SupervisorConfig
from runtime.system import ActorSystem
from runtime.testing import CrashError, open_test_system, seeded_order

LIFE = 2000
"""Steps of one system."""

CHILDREN = ("0", "1", "2", "3")
REPEATED = ("raise", "raise later", "in a group", "overrun", "stash", "put off, raise")
"""Told, these come again; or stashed."""

HARM = (
    *("return", "suspend", "sleep", "nursery") * 4,
    *REPEATED,
    *("unstash", "put off", "deaf", "for ever deaf", "tell itself", "stop", "kill"),
)

PLAIN = frozenset(
    {
        *("return", "raise", "stash", "unstash", "tell itself"),
        *("put off", "put off, raise", "stop", "kill"),
    }
)
"""What an actor does at once, also in its sender's turn."""


class Message:
    """What is sent once, and from where on counted."""

    def __init__(self, harm: str, number: int = -1, *, is_ask: bool = False) -> None:
        self.harm = harm
        self.number = number
        self.is_ask = is_ask
        self.begun = 0
        self.lost = 0

    def __repr__(self) -> str:
        kind = "asked" if self.is_ask else "told"
        return f"<{self.harm}, {kind}, begun {self.begun}, lost {self.lost}>"


class Life:
    """One system, what was sent in it, and what was broken.

    Args:
        dice: decides all.
    """

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.sent: list[Message] = []
        self.replies: list[Any] = []
        self.latest: Counter[str] = Counter()
        self.broken: list[str] = []
        self.ends: Counter[int] = Counter()

    def begin(self, name: str, message: Message) -> None:
        """Note that a message is handled; P1, P15."""
        message.begun += 1
        most = 4 if message.harm in REPEATED else 1
        if message.begun > most:
            self.broken.append(f"{message} was handled too often")
        if message.harm in REPEATED or message.number < 0:
            return
        if message.number <= self.latest[name]:
            self.broken.append(f"{message} was overtaken")
        self.latest[name] = message.number

    def lose(self, letter: DeadLetter) -> None:
        """Note a dead letter; P10."""
        message = letter.message
        if isinstance(message, Message) and letter.reason != "late_reply":
            message.lost += 1

    def judge(self) -> None:
        """Find messages without a fate, or with two; P10."""
        for message in self.sent:
            if message.lost > 1 or not (message.begun or message.lost):
                self.broken.append(f"{message} had not one fate")
        if not all(reply.is_set for reply in self.replies):
            self.broken.append("an asker was not answered")
        if any(times > 1 for times in self.ends.values()):
            self.broken.append("a watcher was told twice")


class Culprit(Actor):
    """Does what its messages say.

    Args:
        life: where it notes what it is given.
    """

    deadline: ClassVar[float | None] = 1.0
    mailbox: ClassVar[MailboxConfig] = MailboxConfig(capacity=8)
    passes_on: ClassVar[bool] = True

    def __init__(self, life: Life) -> None:
        super().__init__()
        self.life = life
        self.is_handling = self.is_over = False

    def on_start(self) -> Any:
        dice = self.life.dice.random()
        if dice < 0.05:
            raise CrashError("start")
        return pause(0.1) if dice < 0.3 else None

    def on_stop(self) -> Any:
        return self.harm_in_hook()

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> Any:
        del exception_type, exception_value, traceback
        return self.harm_in_hook()

    def on_stop_due(self) -> None:
        if self.life.dice.random() < 0.1:
            raise CrashError("stop due")

    def on_interrupt(self, message: Any) -> None:
        del message
        ref = self.actor_ref
        acts = (ref.kill, self.stop, ref.interrupt, ref.stop, *(bool,) * 8)
        self.life.dice.choice(acts)()

    def harm_in_hook(self) -> Any:
        if self.is_over:
            self.life.broken.append("two hooks of an end")
        self.is_over = True
        dice = self.life.dice.random()
        if dice < 0.1:
            raise CrashError("hook")
        if dice < 0.2:
            self.actor_ref.kill()
            self.actor_ref.crash(CrashError("in a hook"))
            self.actor_ref.interrupt()
        return pause(dice * 5) if dice < 0.4 else None

    def on_receive(self, message: Message | Answer) -> Any:
        if self.is_over or self.is_handling:
            self.life.broken.append(f"{message} met what had ended, or another")
        if isinstance(message, Answer):
            if message.reply is not None:
                message.reply.offer("put off")
            return None
        self.life.begin(self.actor_urn, message)
        if message.harm in PLAIN:
            return self.act(message)
        self.is_handling = True
        return self.act_slowly(message)

    def pass_on(self, message: Message | Answer) -> bool:
        if isinstance(message, Answer) or message.harm not in PLAIN:
            return False
        if self.life.dice.random() < 0.2:
            return False
        self.on_receive(message)
        return True

    def act(self, message: Message) -> None:
        acts: dict[str, Callable[[], object]] = {
            "raise": crash,
            "stash": self.stash if message.begun == 1 else bool,
            "unstash": self.unstash,
            "tell itself": lambda: self.tell(self.actor_ref, Message("return")),
            "put off": lambda: self.after(0.1, Answer(self.defer_reply())),
            "put off, raise": lambda: crash(self.defer_reply()),
            "stop": self.stop,
            "kill": self.kill_itself,
        }
        acts.get(message.harm, bool)()

    def kill_itself(self) -> None:
        """End, with something in the system lane that must not be handled; P12."""
        self.note(Answer(None))
        self.actor_ref.kill()
        self.is_over = True

    async def act_slowly(self, message: Message) -> str:
        try:
            match message.harm:
                case "suspend":
                    await trio.lowlevel.checkpoint()
                case "sleep":
                    await trio.sleep(0.3)
                case "overrun":
                    await trio.sleep(3)
                case "deaf" | "for ever deaf":
                    with trio.CancelScope(shield=True):
                        await trio.sleep(2 if message.harm == "deaf" else 20)
                case "raise later":
                    await trio.sleep(0.1)
                    raise CrashError("later")
                case _:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(trio.sleep, 0.1)
                        if message.harm == "in a group":
                            raise CrashError("in a group")
        finally:
            self.is_handling = False
        return "answer"


async def pause(seconds: float) -> None:
    await trio.sleep(seconds)


def crash(_reply: object = None) -> None:
    raise CrashError("to order")


class Answer:
    """A note of an actor to itself: to answer now what it had put off."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply


class Watcher(Actor):
    """Watches whom it is told to, and counts the news."""

    def __init__(self, life: Life) -> None:
        super().__init__()
        self.life = life

    def on_receive(self, message: Any) -> None:
        if isinstance(message, Terminated):
            self.life.ends[id(message.ref)] += 1
        else:
            self.watch(message)


class Story:
    """Carries out a life's steps.

    Args:
        life: whose.
        system: where.
        root: the supervisor of all culprits.
    """

    def __init__(self, life: Life, system: ActorSystem, root: ActorRef) -> None:
        self.life = life
        self.system = system
        self.root = root
        self.teller = Watcher(life)
        self.watcher = system.spawn(self.teller)
        self.watched: set[ActorRef] = set()

    async def step(self, number: int) -> None:
        """Do one thing to one of the children."""
        dice = self.life.dice
        ref = self.system.find(f"root/{dice.choice(CHILDREN)}")
        if ref is None:
            await self.start_missing()
            return
        if ref not in self.watched:
            self.watched.add(ref)
            self.watcher.tell(ref)
        kind = dice.randrange(100)
        if kind < 70:
            self.send(ref, Message(dice.choice(HARM), number, is_ask=kind < 35))
        elif kind < 90:
            await trio.sleep(dice.choice((0.0, 0.01, 0.2, 1.1)))
        elif kind < 98:
            error = CrashError("crashed")
            acts = (ref.interrupt, ref.interrupt, ref.kill, lambda: ref.crash(error))
            dice.choice(acts)()
        else:
            self.life.replies.append(ref.stop(drain=kind == 99))

    def send(self, ref: ActorRef, message: Message) -> None:
        """Tell, as an actor or from outside, or ask; what is refused is not sent."""
        if message.is_ask:
            reply = ref.ask(message, timeout=60.0)
            self.life.replies.append(reply)
            if reply.is_set:
                return
        elif message.number % 2:
            self.teller.tell(ref, message)
        else:
            try:
                ref.tell(message)
            except (pykka.ActorDeadError, MailboxFullError):
                return
        self.life.sent.append(message)

    async def start_missing(self) -> None:
        """Start the actors again that have ended for good."""
        for name in CHILDREN:
            if self.system.find(f"root/{name}") is None:
                spec = ChildSpec(
                    name=name, start=lambda: Culprit(self.life), shutdown=2.0
                )
                with suppress(CrashError, MisuseError):
                    await self.root.ask(StartChild(spec), timeout=1000.0)


async def live(seed: int, steps: int) -> list[str]:
    """Live one life; give what was broken."""
    life = Life(Random(seed))  # noqa: S311
    backoff = Backoff(first=0.01, then=0.01, maximum=0.05)
    config = SupervisorConfig(intensity=10**9, backoff=backoff)
    async with open_test_system() as system:
        system.dead_letters.observe(life.lose)
        root = await system.start_root(Supervisor((), config))
        story = Story(life, system, root)
        for number in range(1, steps + 1):
            await story.step(number)
        await trio.sleep(200)
        waiting = [each for each in system.actors() if each.depth]
        life.judge()
        life.broken += [f"{each} has not gone on" for each in waiting]
    return life.broken


def lives(steps: int, seed: int) -> list[str]:
    """Live as many lives as that takes; give what was broken in the first bad one."""
    for number in range(-(-steps // LIFE)):
        dice = seed * 1_000_000 + number
        with seeded_order(dice):
            clock = trio.testing.MockClock(autojump_threshold=0)
            broken = trio.run(live, dice, min(LIFE, steps), clock=clock)
        if broken:
            return [f"seed {dice}", *broken]
    return []


def test_whatever_is_done_every_message_has_its_fate() -> None:
    assert lives(6000, 1) == []


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    found = lives(int(sys.argv[1]), int(sys.argv[2]))
    sys.exit("\n".join(found[:5]) or 0)
