"""What must fit together in hooks; asked by `settings.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.model_checks import unknown
from runtime.config import Complaint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from connectors.config import AppConfig
    from connectors.hook_config import HookConfig
    from connectors.model_checks import Way

OF_PROGRAMS = ("folder", "readable", "writable", "env")


def check_hooks(app: AppConfig) -> Iterator[Complaint]:
    """Check every hook."""
    for name, hook in app.hooks.items():
        way: Way = ("hooks", name)
        yield from check_code(way, hook)
        for key, known in (("connectors", app.connectors), ("agents", app.agents)):
            for index, each in enumerate(getattr(hook, key)):
                yield from unknown((*way, key, index), key[:-1], each, known)
        if hook.agents and "message_received" in hook.events:
            text = "a message that came in is no agent's yet: it is asked about all"
            hint = "make two hooks, or take the agents out"
            yield Complaint((*way, "agents"), text, hint)
        is_asked = {"message_received", "message_sending"} & set(hook.events)
        if hook.on_failure == "closed" and not is_asked:
            text = "it is only told of turns: there is nothing to hold back"
            yield Complaint((*way, "on_failure"), text, 'take it out, or say "open"')


def check_code(way: Way, hook: HookConfig) -> Iterator[Complaint]:
    """Check what is run."""
    if bool(hook.command) == bool(hook.python):
        text = "is a program or Python: give command or python, one of the two"
        yield Complaint(way, text, 'for example: command = ["python3", "check.py"]')
    if hook.command and not hook.command[0].strip():
        yield Complaint((*way, "command"), "names no program", "put its name first")
    for key in OF_PROGRAMS:
        if hook.python and getattr(hook, key):
            text = "a hook in Python has none: it runs in this process"
            yield Complaint((*way, key), text, "take it out")
