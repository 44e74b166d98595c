"""Proves that pykka still has the seam that the kernel is built on.

`runtime/actor/actor.py`, `ref.py` and `reply.py` override names that pykka calls
internal. When this goes red after an upgrade, read pykka's changes to these names
first.
"""

from __future__ import annotations

import inspect
from importlib.metadata import version
from typing import Any

import pykka
import pytest
from pykka import messages
from pykka._envelope import Envelope
from pykka._introspection import get_attr_directly


class ListInbox:
    """An inbox that only remembers what pykka puts in."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope[Any]] = []

    def put(self, envelope: Envelope[Any], /) -> None:
        self.envelopes.append(envelope)

    def get(self) -> Envelope[Any]:
        return self.envelopes.pop(0)

    def empty(self) -> bool:
        return not self.envelopes


class LoudFuture(pykka.Future[Any]):
    """A future of our own kind, to see who makes it."""


class Bare(pykka.Actor):
    """An actor with the three hooks filled and nothing else."""

    greeting = "hello"

    @staticmethod
    def _create_actor_inbox() -> Any:
        return ListInbox()

    @staticmethod
    def _create_future() -> pykka.Future[Any]:
        return LoudFuture()

    def _start_actor_loop(self) -> None:
        """Nothing runs it: the tests look at what was put in."""

    def greet(self, name: str) -> str:
        return f"{self.greeting} {name}"

    def on_receive(self, message: Any) -> Any:
        return ("received", message)


def test_the_version_is_one_we_have_read() -> None:
    major, minor = (int(part) for part in version("pykka").split(".")[:2])
    assert (major, minor) >= (4, 5)
    assert major < 5


def test_an_actor_asks_its_subclass_for_these_three_and_no_more() -> None:
    assert pykka.Actor.__abstractmethods__ == {
        "_create_actor_inbox",
        "_create_future",
        "_start_actor_loop",
    }


@pytest.mark.parametrize(
    ("owner", "name", "parameters"),
    [
        (pykka.Actor, "__init__", ["self", "_args", "_kwargs"]),
        (pykka.Actor, "_handle_receive", ["self", "message"]),
        (pykka.Actor, "_start_actor_loop", ["self"]),
        (pykka.Actor, "on_start", ["self"]),
        (pykka.Actor, "on_stop", ["self"]),
        (pykka.Actor, "on_receive", ["self", "message"]),
        (pykka.ActorRef, "__init__", ["self", "actor"]),
        (pykka.ActorRef, "is_alive", ["self"]),
        (pykka.ActorRef, "tell", ["self", "message"]),
        (pykka.ActorRef, "ask", ["self", "message", "block", "timeout"]),
        (pykka.ActorRef, "stop", ["self", "block", "timeout"]),
        (pykka.ActorRef, "proxy", ["self"]),
        (pykka.Future, "__init__", ["self"]),
        (pykka.Future, "get", ["self", "timeout"]),
        (pykka.Future, "set", ["self", "value"]),
        (pykka.Future, "set_exception", ["self", "exc_info"]),
        (pykka.Future, "set_get_hook", ["self", "func"]),
        (pykka.Future, "filter", ["self", "func"]),
        (pykka.Future, "join", ["self", "futures"]),
        (pykka.Future, "map", ["self", "func"]),
        (pykka.Future, "reduce", ["self", "func", "args"]),
        (pykka.Future, "__await__", ["self"]),
    ],
)
def test_a_method_we_override_has_the_parameters_we_gave_it(
    owner: type, name: str, parameters: list[str]
) -> None:
    assert list(inspect.signature(getattr(owner, name)).parameters) == parameters


def test_an_actor_keeps_these_names_which_we_replace() -> None:
    actor = Bare()
    assert set(vars(actor)) == {
        "_actor_ref",
        "actor_inbox",
        "actor_stopped",
        "actor_urn",
    }


def test_a_ref_keeps_these_names_which_we_replace() -> None:
    assert set(vars(Bare().actor_ref)) == {
        "_actor_weakref",
        "actor_class",
        "actor_inbox",
        "actor_stopped",
        "actor_urn",
    }


def test_an_envelope_has_a_message_and_a_reply_slot() -> None:
    future = LoudFuture()
    envelope = Envelope("hello", reply_to=future)
    assert (envelope.message, envelope.reply_to) == ("hello", future)


def test_tell_puts_an_envelope_without_a_reply_slot() -> None:
    actor = Bare()
    actor.actor_ref.tell("hello")
    envelope = actor.actor_inbox.get()
    assert (envelope.message, envelope.reply_to) == ("hello", None)


def test_ask_takes_its_future_from_the_actor_class() -> None:
    actor = Bare()
    future = actor.actor_ref.ask("hello", block=False)
    assert isinstance(future, LoudFuture)
    assert actor.actor_inbox.get().reply_to is future


def test_stop_is_asked_with_pykkas_own_message() -> None:
    actor = Bare()
    actor.actor_ref.stop(block=False)
    assert isinstance(actor.actor_inbox.get().message, messages._ActorStop)


def test_a_proxy_finds_its_actor_through_the_weak_reference() -> None:
    actor = Bare()
    actor.actor_ref._actor_weakref = lambda: None  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(pykka.ActorDeadError, match="weakref"):
        actor.actor_ref.proxy()


def test_a_proxy_asks_with_proxy_messages() -> None:
    actor = Bare()
    proxy: Any = actor.actor_ref.proxy()
    call, read = proxy.greet("anna"), proxy.greeting
    assert isinstance(call, LoudFuture)
    assert isinstance(read, LoudFuture)
    assert actor.actor_inbox.get().message == messages.ProxyCall(
        attr_path=("greet",), args=("anna",), kwargs={}
    )
    assert actor.actor_inbox.get().message == messages.ProxyGetAttr(("greeting",))


def test_an_actor_without_init_still_carries_out_proxy_messages() -> None:
    actor = Bare.__new__(Bare)
    call = messages.ProxyCall(attr_path=("greet",), args=("anna",), kwargs={})
    assert actor._handle_receive(call) == "hello anna"
    assert actor._handle_receive(messages.ProxyGetAttr(("greeting",))) == "hello"
    actor._handle_receive(messages.ProxySetAttr(("greeting",), "bye"))
    assert actor._handle_receive(call) == "bye anna"
    assert actor._handle_receive("other") == ("received", "other")


def test_an_attribute_path_is_walked_from_the_actor() -> None:
    assert get_attr_directly(Bare, ("greeting",)) == "hello"


def test_a_threading_actor_still_owns_a_thread() -> None:
    class Echo(pykka.ThreadingActor):
        def on_receive(self, message: Any) -> Any:
            return message

    ref = Echo.start()
    assert ref.ask("hello", timeout=5) == "hello"
    assert ref.stop(timeout=5)


def test_errors_keep_their_names() -> None:
    actor = Bare()
    actor.actor_stopped.set()
    with pytest.raises(pykka.ActorDeadError):
        actor.actor_ref.tell("hello")
    assert issubclass(pykka.Timeout, Exception)
