"""Mistakes in hooks, budgets, clocks, groups and nodes: what one owes another."""

from __future__ import annotations

from tests.mutants.mistake import Mutant

STRUCK = ("tests/stories/hooks/test_struck_words.py",)
LINES = ("tests/actors/inbound/test_chat_lines.py",)
QUEUE = ("tests/actors/session/test_queue.py",)
PERMITS = ("tests/actors/models/test_limiter.py",)
CIRCUITS = ("tests/actors/models/test_accounts.py",)
LEDGER = ("tests/actors/models/test_spending.py",)

SHARED = ("tests/connectors/app/test_nodes.py",)
SHARING = ("tests/connectors/app/test_sharing.py",)
NODES = ("tests/runtime/store/test_postgresql_nodes.py",)

PROMISES = (
    # --- nodes --------------------------------------------------------------------
    Mutant(
        "nodes: a bot is heard by a node that gave it away",
        "connectors/app/sharing.py",
        "        self._seat.accounts -= going\n",
        "",
        SHARING,
    ),
    Mutant(
        "nodes: events of a bot's chat are written under the company's lease",
        "connectors/app/nodes.py",
        'return f"{PART}{part}" if has_parts(config, connector) else COMPANY',
        "return COMPANY",
        SHARED,
    ),
    Mutant(
        "nodes: each node sends what is said in a bot's chats",
        "actors/services.py",
        "        return connector in self.accounts\n",
        "        return True\n",
        SHARED,
    ),
    Mutant(
        "nodes: what a platform calls may be at any node",
        "connectors/chat/telegram/platform.py",
        'only_calls=lambda config: config.mode == "poll"',
        "only_calls=lambda _: True",
        SHARED,
    ),
    Mutant(
        "nodes: a lease is removed that another node needs",
        "runtime/nodes/statements.py",
        "\n    AND NOT EXISTS (SELECT FROM node WHERE state = 'up' AND id <> %(node)s)",
        "",
        NODES,
    ),
    Mutant(
        "nodes: who joins does not look again whom it cannot work beside",
        "runtime/postgresql/nodes.py",
        "            with db.transaction():\n                alone()\n",
        "",
        NODES,
    ),
    Mutant(
        "nodes: tables are changed under a node that needs them",
        "runtime/postgresql/migrations.py",
        "            check()\n",
        "",
        NODES,
    ),
    Mutant(
        "nodes: who is gone may come back beside a release it cannot live with",
        "runtime/postgresql/nodes.py",
        "            for step in statements.shut_out(gone):\n"
        "                self._run(db, step)\n",
        "            pass\n",
        NODES,
    ),
    Mutant(
        "nodes: a release stands beside one that needs the next",
        "runtime/nodes/rows.py",
        "        if own.version < other.oldest:\n",
        "        if own.version + 1 < other.oldest:\n",
        ("tests/runtime/nodes/test_membership.py",),
    ),
    Mutant(
        "nodes: a release refuses what newer tables leave room for",
        "runtime/postgresql/migrations.py",
        "    if version > newest and oldest_of(db) > newest:\n",
        "    if version > newest:\n",
        ("tests/runtime/store/test_postgresql_faults.py",),
    ),
    Mutant(
        "nodes: a table of a name with nothing in it is no difference",
        "connectors/app/nodes.py",
        'IS_THERE = "+"\n',
        'IS_THERE = "="\n',
        SHARED,
    ),
    Mutant(
        "nodes: others are not told of a commit that concerns them",
        "runtime/postgresql/threads.py",
        "        db.execute(NOTIFY, ",
        "        _ = (NOTIFY, ",
        NODES,
    ),
    Mutant(
        "nodes: a node that was taken over from shows people something",
        "runtime/postgresql/hints.py",
        " AND state = 'up'",
        "",
        NODES,
    ),
    Mutant(
        "nodes: words of another node come up behind their answer",
        "actors/outbound/drafts.py",
        "if draft.reply_id in self._answered:",
        "if False:",
        ("tests/actors/outbound/test_hints.py",),
    ),
    Mutant(
        "nodes: a node that leaves takes up what comes in",
        "actors/inbound/recovery.py",
        "case RouteArrived() if not self._duties.is_leaving:",
        "case RouteArrived():",
        ("tests/actors/inbound/test_router.py",),
    ),
    Mutant(
        "nodes: a node hears its own hints",
        "runtime/nodes/hints.py",
        "None if hint.node == me else",
        "None if hint.node == '' else",
        ("tests/runtime/nodes/test_hints.py",),
    ),
    # --- groups -------------------------------------------------------------------
    Mutant(
        "lines: what moves is found a second time",
        "actors/inbound/chat_lines.py",
        "            if row.id in self._places:\n",
        "            if False:\n",
        LINES,
    ),
    Mutant(
        "lines: a stop goes before the message that it followed",
        "actors/inbound/chat_lines.py",
        "            for each in (place, *stops.get(row.id, ())):\n",
        "            for each in (*stops.get(row.id, ()), place):\n",
        LINES,
    ),
    Mutant(
        "lines: who writes waits for the chats of all others",
        "actors/inbound/chat_lines.py",
        "        self._urgent[chat] = None\n        for _ in",
        "        for _ in",
        LINES,
    ),
    Mutant(
        "lines: new words before the old ones of their chat",
        "actors/inbound/chat_lines.py",
        "        if line.left or is_late:\n",
        "        if is_late:\n",
        LINES,
    ),
    Mutant(
        "groups: a chat that a hook held is never let go",
        "actors/inbound/router.py",
        "            self._begin(head, message.message)\n"
        "        self._go_ahead(head.chat)\n",
        "            self._begin(head, message.message)\n",
        ("tests/stories/hooks/test_hooks.py",),
    ),
    Mutant(
        "a flood takes the places of those who wait already",
        "actors/session/queue.py",
        "    most = cap * 2 if own * len(senders) < cap else cap\n",
        "    most = cap * 2 if not own else cap\n",
        QUEUE,
    ),
    Mutant(
        "whoever had a turn just now is next again",
        "actors/session/queue.py",
        "self._waiting = tuple(waiting)",
        "del waiting",
        QUEUE,
    ),
    Mutant(
        "a flood takes half of a busy group's time",
        "actors/session/queue.py",
        "(each.whose[:1] in lets_go_first, each.since)",
        "each.since",
        QUEUE,
    ),
    Mutant(
        "whoever has been silent goes before those who came earlier",
        "actors/session/queue.py",
        "since = max([self._generation, *own[-1:]])",
        "since = 0",
        QUEUE,
    ),
    Mutant(
        "what is written after ones own turn goes before what was written earlier",
        "actors/session/queue.py",
        "since = max([self._generation, *own[-1:]])",
        "since = self._generation",
        QUEUE,
    ),
    Mutant(
        "whoever floods waits for ever",
        "actors/session/queue.py",
        "many if self._passed < MOST_PASSED else ()",
        "many",
        QUEUE,
    ),
    Mutant(
        "groups: who writes much is answered first",
        "actors/session/queue.py",
        "free[0] if was_gathering or len(free) == 1 else self._first_of(free)",
        "free[0]",
        QUEUE,
    ),
    Mutant(
        "groups: a turn that waits keeps its place",
        "actors/session/queue.py",
        "        self._replace(turn, is_aside=True)\n",
        "",
        QUEUE,
    ),
    Mutant(
        "permits: what is less urgent never comes",
        "actors/models/limiter.py",
        "now - self._since[x.permit] >= LATE_AFTER]",
        "False]",
        PERMITS,
    ),
    Mutant(
        "permits: what is late takes all",
        "actors/models/limiter.py",
        "bool(late) and not self._was_late\n",
        "bool(late)\n",
        PERMITS,
    ),
    # --- hooks --------------------------------------------------------------------
    Mutant(
        "hooks: quoted words as they were",
        "actors/inbound/hooks.py",
        'text=passed.worded("quote", quoted.text)',
        "text=quoted.text",
        STRUCK,
    ),
    Mutant(
        "hooks: what is held back is kept all the same",
        "actors/inbound/hooks.py",
        "            without_words(inbound) if passed.cancelled_by else left",
        "            left",
        STRUCK,
    ),
    Mutant(
        "hooks: nobody asked about what an agent plans",
        "actors/turn/turn.py",
        "            if isinstance(planned, Failed) or planned.carried.plan is None:\n",
        "            if True:\n",
        STRUCK,
    ),
    Mutant(
        "hooks: tasks handed on by a tool as they were",
        "actors/hooks/asker.py",
        '            reworded(each, lambda text: word("task", text))\n',
        "            reworded(each, lambda text: text)\n",
        STRUCK,
    ),
    Mutant(
        "hooks: captions of files as they were",
        "actors/hooks/asker.py",
        '        caption = word("file", each.caption) if each.caption else ""\n',
        "        caption = each.caption\n",
        STRUCK,
    ),
    # --- budgets ------------------------------------------------------------------
    Mutant(
        "budgets: calls that are not stored yet are forgotten",
        "actors/models/spending.py",
        "            self.budgets.enter(call.body.who, call.body.amount, call.at)\n",
        "            del call\n",
        LEDGER,
    ),
    Mutant(
        "budgets: a row that is just being stored counts twice",
        "actors/models/spending.py",
        "        if row.id in self.unstored:\n            return\n",
        "",
        LEDGER,
    ),
    Mutant(
        "budgets: other limits, and nothing is under way",
        "actors/models/accounts.py",
        "            for call, held in self._held.items():\n"
        "                self._spending.budgets.hold(call, held.who, held.estimate)\n",
        "",
        LEDGER,
    ),
    Mutant(
        "budgets: a turn that ends keeps what it reserved",
        "actors/models/accounts.py",
        "                return self._release_all(self._turns.pop(ref, set()))\n",
        "                return self._release_all(set())\n",
        LEDGER,
    ),
    Mutant(
        "budgets: one unreadable row stops all models",
        "actors/models/spending.py",
        "    except ValueError as error:\n",
        "    except ZeroDivisionError as error:\n",
        LEDGER,
    ),
    # --- circuits -----------------------------------------------------------------
    Mutant(
        "circuits: all at once after a failure",
        "actors/models/pool.py",
        "else self.probed_at + PROBE",
        "else self.probed_at",
        CIRCUITS,
    ),
    Mutant(
        "circuits: a probe that nobody waits for is never over",
        "actors/models/pool.py",
        "        if self.probed_at == probed_at:\n",
        "        if False:\n",
        CIRCUITS,
    ),
    Mutant(
        "circuits: a late answer ends what the provider asked for",
        "actors/models/pool.py",
        "        is_kept = self.required_until > now\n",
        "        is_kept = False\n",
        CIRCUITS,
    ),
    # --- clocks -------------------------------------------------------------------
    Mutant(
        "clocks: what was spent under a clock ahead is of today",
        "actors/models/budget.py",
        "if at >= period}\n",
        "}\n            self._sums[period] = max(self._sums.values(), key=len,"
        " default={})\n",
        LEDGER,
    ),
    Mutant(
        "clocks: a clock ahead ends conversations",
        "actors/session/lifecycle.py",
        "        now, rule = services.sure_clock.wall(), services.sessions.rule\n",
        "        now, rule = services.clock.wall(), services.sessions.rule\n",
        ("tests/stories/session/test_lifespan.py",),
    ),
    Mutant(
        "clocks: ids begin anew after a restart",
        "runtime/ids.py",
        "        self._millisecond = millisecond_of(after)\n",
        "        self._millisecond = 0 * len(after)\n",
        ("tests/runtime/test_ids.py", "tests/stories/memory/test_forgotten.py"),
    ),
    Mutant(
        "clocks: a jump ahead is believed at once",
        "actors/journal/clock.py",
        "        return wall if wall <= surely + LEAP else surely\n",
        "        return wall if surely else surely\n",
        ("tests/actors/journal/test_sure_time.py",),
    ),
)
