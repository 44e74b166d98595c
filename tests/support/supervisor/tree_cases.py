"""Trees of supervisors, messages on the way, and children by hand, as a table."""

from __future__ import annotations

from runtime.supervision.supervisor import SupervisorConfig
from tests.support.supervisor.cases import STEADY, A, B, C, Case, Kid, kid

LOWER = SupervisorConfig(intensity=1, backoff=STEADY)
TOGETHER = SupervisorConfig(strategy="one_for_all", intensity=1, backoff=STEADY)

UPPER = (
    Case(
        id="the upper supervisor starts the lower one again",
        kids=(A, Kid("in", kids=(B, C), config=LOWER)),
        steps=("crash in/b", "crash in/c", "wait 9"),
        log="a up, in/b up, in/c up, in/b failed, in/b up, in/c failed, in/b down, "
        "in/b up, in/c up",
        alive="a in in/b in/c",
    ),
    Case(
        id="the new one is not told of the old one's children",
        kids=(Kid("in", kids=(A, B, C), config=TOGETHER),),
        intensity=2,
        steps=("kill in", "wait 9", "crash in/a", "wait 9", "tell in/c x"),
        log="in/a up, in/b up, in/c up, in/a up, in/b up, in/c up, "
        "in/a failed 9, in/c down 9, in/b down 9, in/a up 9, in/b up 9, in/c up 9, "
        "in/c got x 18",
    ),
    Case(
        id="an end in order tells it nothing, either",
        kids=(Kid("in", kids=(A, B), config=LOWER), kid("z")),
        strategy="one_for_all",
        intensity=1,
        steps=("crash z", "wait 9", "crash in/a", "wait 1"),
        log="in/a up, in/b up, z up, z failed, in/b down, in/a down, "
        "in/a up, in/b up, z up, in/a failed 9, in/a up 9",
    ),
    Case(
        id="what fails too often fails the upper one in the end",
        kids=(A, Kid("in", kids=(B,), config=SupervisorConfig(intensity=0))),
        intensity=1,
        steps=("kill in/b", "kill in/b"),
        log="a up, in/b up, in/b up, a down",
        alive="",
        ends="RestartLimitError",
    ),
    Case(
        id="a lower supervisor whose children cannot start counts as failed",
        kids=(A, Kid("in", kids=(kid("b", "ok fail"),), config=LOWER)),
        steps=("kill in", "wait 9"),
        log="a up, in/b up, a down 0.3",
        ends="RestartLimitError",
    ),
    Case(
        id="killed while it starts its children, it takes them along",
        kids=(Kid("in", kids=(A, kid("b", "ok hang slow"))),),
        steps=("kill in", "look", "kill in", "wait 2"),
        log="in/a up, in/b up, in/a up, 3 alive, in/a up 0.1, in/b up 1.1",
        alive="in in/a in/b",
    ),
    Case(
        id="killed while it stops a sibling, it takes all along",
        kids=(
            Kid("in", kids=(A, Kid("b", stop="hang", shutdown=60)), config=TOGETHER),
        ),
        steps=("crash in/a", "look", "kill in", "wait 1"),
        log="in/a up, in/b up, in/a failed, 3 alive, in/a up, in/b up",
        alive="in in/a in/b",
    ),
    Case(
        id="it cannot be interrupted in the middle",
        kids=(A, kid("b", stop="slow")),
        strategy="one_for_all",
        steps=("crash a", "interrupt .", "wait 2"),
        log="a up, b up, a failed, b down 1, a up 1, b up 1",
    ),
)

WORDS = (
    Case(
        id="what is sent meanwhile is handled afterwards, in order",
        kids=(A,),
        steps=("crash a", "crash a & tell a x & tell a y", "tell a z", "wait 1"),
        log="a up, a failed, a up, a failed, a up 0.1, "
        "a got x 0.1, a got y 0.1, a got z 0.1",
    ),
    Case(
        id="what waited when it failed, too",
        kids=(A,),
        steps=("late a & tell a x & tell a y", "wait 2"),
        log="a up, a failed 1, a up 1, a got x 2, a got y 2",
    ),
    Case(
        id="a message that kills three incarnations is taken away",
        kids=(A,),
        intensity=9,
        steps=("poison a & tell a x", "wait 9"),
        log="a up, a failed, a up, a failed, a up 0.1, a failed 0.1, "
        "a up 0.3, a got x 0.3",
    ),
)

BY_HAND = (
    Case(
        id="a child can be added",
        kids=(A,),
        extra=(B,),
        steps=("start b", "tell b x", "end"),
        log="a up, b up, start b ./b, b got x, b down, a down, end True",
        ends="shutdown",
    ),
    Case(
        id="but not twice",
        kids=(A,),
        extra=(A,),
        steps=("start a",),
        log="a up, start a MisuseError",
    ),
    Case(
        id="a child that does not start harms nobody and leaves its name free",
        kids=(A,),
        extra=(kid("b", "fail ok"), kid("c", "late-fail"), kid("d", "unborn")),
        steps=("start b", "start c", "start d", "start b"),
        log="a up, start b CrashError, start c CrashError 1, start d CrashError 1, "
        "b up 1, start b ./b 1",
        alive="a b",
    ),
    Case(
        id="one that takes too long is taken away",
        kids=(A,),
        extra=(Kid("b", "hang slow", start_timeout=3),),
        steps=("start b", "start b"),
        log="a up, start b StartError 3, b up 4, start b ./b 4",
    ),
    Case(
        id="one that declines answers nothing and can be asked again",
        kids=(A,),
        extra=(kid("b", "decline ok"),),
        steps=("start b", "restart b"),
        log="a up, start b None, b up, restart b ./b",
    ),
    Case(
        id="a temporary one that declines is forgotten",
        kids=(A,),
        extra=(Kid("b", "decline ok", restart="temporary"),),
        steps=("start b", "restart b"),
        log="a up, start b None, restart b MisuseError",
    ),
    Case(
        id="a stopped child stays down until it is started by hand",
        kids=(A, B),
        steps=("stop a", "wait 9", "stop a", "restart a", "crash a"),
        log="a up, b up, a down, stop a True, stop a False 9, a up 9, "
        "restart a ./a 9, a failed 9, a up 9",
    ),
    Case(
        id="it keeps its place",
        kids=(A, B),
        steps=("stop a", "restart a", "end"),
        log="a up, b up, a down, stop a True, a up, restart a ./a, b down, a down, "
        "end True",
        ends="shutdown",
    ),
    Case(
        id="one that fails to start by hand keeps it, too",
        kids=(kid("a", "ok fail ok"), B),
        steps=("stop a", "restart a", "restart a", "end"),
        log="a up, b up, a down, stop a True, restart a CrashError, a up, "
        "restart a ./a, b down, a down, end True",
        ends="shutdown",
    ),
    Case(
        id="a forgotten child is gone",
        kids=(A,),
        extra=(A,),
        steps=("forget a", "restart a", "start a"),
        log="a up, a down, forget a True, restart a MisuseError, a up, start a ./a",
    ),
    Case(
        id="a temporary child that ended can be added anew",
        kids=(A,),
        extra=(Kid("b", restart="temporary"),),
        steps=(
            "start b",
            "crash b",
            "start b",
            "stop b",
            "start b",
            "shutdown b",
            "start b",
        ),
        log="a up, b up, start b ./b, b failed, b up, start b ./b, b down, "
        "stop b True, b up, start b ./b, b down, b up, start b ./b",
        alive="a b",
    ),
    Case(
        id="a name nobody has is refused",
        kids=(A,),
        steps=("stop x", "restart x"),
        log="a up, stop x False, restart x MisuseError",
    ),
    Case(
        id="a running child is not started again",
        kids=(A,),
        steps=("restart a",),
        log="a up, restart a MisuseError",
    ),
    Case(
        id="a child stopped while it waits never comes back",
        kids=(A,),
        steps=("crash a", "crash a", "stop a", "wait 9"),
        log="a up, a failed, a up, a failed, stop a True",
        alive="",
    ),
    Case(
        id="nor one that is stopped by its ref",
        kids=(A,),
        steps=("crash a", "crash a", "shutdown a", "wait 9"),
        log="a up, a failed, a up, a failed",
        alive="",
    ),
    Case(
        id="a child that waits can be started at once, and then once only",
        kids=(A,),
        steps=("crash a", "crash a", "restart a", "wait 9"),
        log="a up, a failed, a up, a failed, a up, restart a ./a",
    ),
    Case(
        id="a message it does not know is refused, and harms nobody",
        kids=(A,),
        steps=("tell . nonsense", "say nonsense", "tell a x"),
        log="a up, say nonsense MisuseError, a got x",
    ),
)

RENEWED = (
    Case(
        id="a child is renewed at its place, and keeps its ref and its mailbox",
        kids=(A, B, C),
        extra=(B,),
        steps=("tell b busy & tell b busy", "renew b & tell b y", "wait 8", "end"),
        log="a up, b up, c up, b done 1, b down 1, b up 1, renew b ./b 1, b done 2, "
        "b got y 2, c down 9, b down 9, a down 9, end True 9",
        ends="shutdown",
    ),
    Case(
        id="one that is not there is started",
        kids=(A,),
        extra=(B,),
        steps=("renew b", "tell b x"),
        log="a up, b up, renew b ./b, b got x",
    ),
    Case(
        id="one that has ended for good, too",
        kids=(A, B),
        extra=(A,),
        steps=("stop a", "renew a", "end"),
        log="a up, b up, a down, stop a True, a up, renew a ./a, b down, a down, "
        "end True",
        ends="shutdown",
    ),
    Case(
        id="one that waits for its restart is started once",
        kids=(A,),
        extra=(A,),
        steps=("crash a", "crash a", "renew a", "wait 99", "tell a x"),
        log="a up, a failed, a up, a failed, a up, renew a ./a, a got x 99",
    ),
    Case(
        id="one that fails by its new spec is tried again by that",
        kids=(A, B),
        extra=(kid("a", "ok fail ok"),),
        steps=("renew a", "wait 99", "tell a x"),
        log="a up, b up, a down, a up, renew a CrashError, a got x 99",
    ),
    Case(
        id="nobody else is touched though all would be restarted together",
        kids=(A, B),
        extra=(A,),
        strategy="one_for_all",
        steps=("renew a",),
        log="a up, b up, a down, a up, renew a ./a",
    ),
)

TREES = (*RENEWED, *UPPER, *WORDS, *BY_HAND)
