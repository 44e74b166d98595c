"""Mistakes in the kernel: each breaks a promise of `runtime/SEMANTICS.md`."""

from __future__ import annotations

from tests.mutants.mistake import Mutant

ATTACKED = ("tests/runtime/test_attacked.py",)
ENDS = ("tests/house/kernel/test_semantics.py", "tests/runtime/test_actor_ends.py")

STRANGERS = ("tests/runtime/actor/test_strangers.py",)

KERNEL = (
    Mutant(
        "who kills itself handles first what it has noted",
        "runtime/actor/cell.py",
        "        self.mailbox.put_system_first(Stop(exit_))\n",
        "        self.post_system(Stop(exit_))\n",
        ENDS,
    ),
    Mutant(
        "killed in the plain part of a hook, it waits all the same",
        "runtime/actor/lifecycle.py",
        "    if cell.is_killed:\n        cut_short(cell, scope, KILLED)\n",
        "",
        ENDS,
    ),
    Mutant(
        "a nursery that a handler leaves open ends the system",
        "runtime/actor/lifecycle.py",
        "        _give_up_nurseries()\n",
        "",
        STRANGERS,
    ),
    Mutant(
        "who is slow to fall asleep is started again",
        "runtime/actor/lifecycle.py",
        '    is_asleep = cell.state == "passivating"\n',
        "    is_asleep = False\n",
        ("tests/runtime/supervision/test_overruns.py",),
    ),
    Mutant(
        "a tick that was set aside and failed is the last",
        "runtime/actor/cell.py",
        "            item.is_waiting = False  # as it did if it was set aside\n",
        "",
        ("tests/runtime/actor/test_timers.py",),
    ),
    Mutant(
        "asks that fail are not counted in a turn",
        "runtime/actor/cell.py",
        "                if self.kernel.dispatcher.spend(1):  # it is not `handled`\n",
        "                if True:\n",
        ("tests/runtime/actor/test_fairness.py",),
    ),
    Mutant(
        "another system's actor is told on the wrong thread",
        "runtime/actor/actor.py",
        "        if other.kernel is not kernel:",
        "        if False:",
        STRANGERS,
    ),
    Mutant(
        "Ctrl-C while a system ends leaves its tasks running",
        "runtime/system.py",
        "        except KeyboardInterrupt as error:\n            pressed = error\n",
        "        except KeyboardInterrupt:\n            raise\n",
        ("tests/runtime/test_system.py",),
    ),
    Mutant(
        "the last end of an actor counts, not the gravest",
        "runtime/actor/messages.py",
        "    if SEVERITY.get(after.how, 0) <= SEVERITY.get(before.how, 0):\n",
        "    if after.how == before.how:\n",
        (*ENDS, *ATTACKED, "tests/runtime/test_kernel_machine.py"),
    ),
    Mutant(
        "killed in its own hook, it goes on",
        "runtime/actor/cell.py",
        "        interrupted, self.current = self.current, STASHED\n",
        "        interrupted, self.current = self.current, EMPTY\n",
        ATTACKED,
    ),
    Mutant(
        "a cancellation from elsewhere ends the kernel",
        "runtime/actor/kernel.py",
        "is_ending = is_awaited and trio.current_effective_deadline() == -inf\n",
        "is_ending = is_awaited\n",
        ATTACKED,
    ),
    Mutant(
        "the pump never gives way",
        "runtime/actor/dispatcher.py",
        "                if not self.turn.spend(spent):\n                    return\n",
        "                self.turn.spend(spent)\n",
        (
            "tests/house/kernel/test_semantics_system.py",
            "tests/runtime/actor/test_fairness.py",
        ),
    ),
    Mutant(
        "a turn is never begun anew",
        "runtime/actor/dispatcher.py",
        "        self.left = MESSAGES_PER_TURN\n        self._ends = None\n        s",
        "        self._ends = None\n        s",
        ("tests/runtime/actor/test_dispatcher.py",),
    ),
    Mutant(
        "an answer replaces the one before",
        "runtime/actor/reply.py",
        "            if self._outcome is not None:\n                return False\n",
        "",
        ("tests/runtime/actor/test_reply.py",),
    ),
    Mutant(
        "room that is made admits nobody",
        "runtime/actor/mailbox.py",
        "                self.weight = 0\n"
        "        if self.senders:\n            self.admit()\n",
        "                self.weight = 0\n",
        ("tests/runtime/actor/test_room.py", "tests/house/kernel/test_semantics.py"),
    ),
    Mutant(
        "who put its answer off and ends leaves the asker waiting",
        "runtime/actor/lifecycle.py",
        "    deferred, cell.deferred = cell.deferred or (), None\n",
        "    deferred, cell.deferred = (), None\n",
        ("tests/runtime/actor/test_reply.py",),
    ),
    Mutant(
        "ticks drift with the loop",
        "runtime/actor/timers.py",
        "        due = timer.due + period * ((now - timer.due) // period + 1)\n",
        "        due = now + period\n",
        ("tests/runtime/actor/test_timers.py",),
    ),
    Mutant(
        "who fails falling asleep is started again",
        "runtime/actor/lifecycle.py",
        '    if cell.state != "passivating":\n',
        "    if cell.actor is not None:\n",
        ("tests/runtime/supervision",),
    ),
    Mutant(
        "a thread's message goes into a mailbox by itself",
        "runtime/actor/actor.py",
        "        if get_ident() != kernel.dispatcher.thread_id:\n",
        "        if kernel.is_closing:\n",
        ATTACKED,
    ),
    Mutant(
        "who is late but answers goes on",
        "runtime/actor/cell.py",
        "            if exit_ is None:\n                return True\n",
        "            if not self.is_killed:\n                return True\n",
        ATTACKED,
    ),
    Mutant(
        "a key is given up for what other keys did",
        "runtime/supervision/keyed.py",
        "            child.window = RestartWindow(config.intensity, config.period)\n",
        "            of = [each.window for each in self._children.values()]\n"
        "            one = RestartWindow(config.intensity, config.period)\n"
        "            child.window = next(filter(None, of), one)\n",
        ATTACKED,
    ),
    Mutant(
        "an owner without room fails who gives up a key",
        "runtime/supervision/keyed.py",
        "            self.tell(self._notify, KeyGivenUp(key, exit_.reason))\n",
        "            self._notify.tell(KeyGivenUp(key, exit_.reason))\n",
        ATTACKED,
    ),
    Mutant(
        "who swallows that it was broken off is left alone",
        "runtime/supervision/watchdog.py",
        "        self._suspects = ()\n        self._kernel",
        "        self._suspects = ()\n        self._can_break = False\n"
        "        self._kernel",
        ATTACKED,
    ),
    Mutant(
        "a handler is blamed for time in which its thread had no processor",
        "runtime/supervision/watchdog.py",
        "had_processor(before, after, now - looked_at)",
        "now - looked_at",
        ("tests/runtime/supervision/test_watchdog.py",),
    ),
    Mutant(
        "what a thread waits for now counts until the machine tells it",
        "runtime/clock.py",
        "    if after.is_ready:\n        return min(seconds, after.ran - before.ran)\n",
        "",
        ("tests/runtime/supervision/test_watchdog.py",),
    ),
    Mutant(
        "what a handler sleeps is taken for time without a processor",
        "runtime/clock.py",
        "    if after.is_ready:\n",
        "    if after:\n",
        ("tests/runtime/supervision/test_watchdog.py",),
    ),
    Mutant(
        "whoever holds the -wal up is named with each try",
        "runtime/sqlite/store.py",
        "            self._is_held = not is_free\n",
        "",
        ("tests/runtime/sqlite/test_sqlite_file.py",),
    ),
)
