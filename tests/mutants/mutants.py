"""Mistakes that the tests must find: each a line of ours, made wrong on purpose.

The first fourteen are the classes that lost, doubled or leaked messages in systems of
this kind; the rest are this program's own promises: about durable turns, tools and
rooms.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutant(NamedTuple):
    """One mistake."""

    name: str
    file: str
    before: str
    """Stands exactly once in the file."""

    after: str
    tests: tuple[str, ...]
    """What must go red; the whole suite would, too."""


STORE = ("tests/contracts", "tests/test_sqlite_store.py")
SIMULATION = ("tests/simulation",)

MUTANTS = (
    Mutant(
        "acknowledged before it is committed",
        "actors/connector.py",
        "        reply = self.defer_reply()\n",
        "        reply = self.defer_reply()\n        reply.offer(True)\n",
        ("tests/test_connector.py",),
    ),
    Mutant(
        "no deduplication",
        "runtime/sqlite_rows.py",
        "    key = (row.id, row.connector, row.platform_id)\n",
        "    key = (row.id, row.connector, row.platform_id + row.id)\n",
        STORE,
    ),
    Mutant(
        "deduplication in memory only",
        "runtime/sqlite_file.py",
        "            migrate(db, self.path, self.migrations)\n",
        "            migrate(db, self.path, self.migrations)\n"
        "            db.execute('UPDATE inbox SET platform_id = hex(randomblob(8))')\n",
        STORE,
    ),
    Mutant(
        "the newest of a mailbox first",
        "runtime/mailbox.py",
        "            item = self.rest.popleft()\n",
        "            item = self.rest.pop()\n",
        ("tests/test_mailbox.py", "tests/test_semantics.py"),
    ),
    Mutant(
        "one conversation for all senders",
        "actors/rules/keys.py",
        '        sender=inbound.sender_id if by_sender else "",\n',
        '        sender="",\n',
        ("tests/rules/test_keys.py", "tests/stories/test_many_people.py"),
    ),
    Mutant(
        "mailboxes without a bound",
        "runtime/mailbox.py",
        "        if self.count >= self._capacity:\n            return False\n"
        "        self.count += 1\n",
        "        self.count += 1\n",
        ("tests/test_mailbox.py", "tests/test_semantics.py"),
    ),
    Mutant(
        "a full disk passed over",
        "runtime/sqlite_threads.py",
        "                job.error = translate(error, self.file.path)\n"
        "                job.error.__cause__ = error\n",
        "                pass\n",
        ("tests/test_sqlite_faults.py",),
    ),
    Mutant(
        "tried again without end",
        "actors/rules/message_state.py",
        "        if self._attempts >= self._limit:\n"
        '            return GiveUp("dead", event.reason)\n',
        "",
        ("tests/rules/test_message_state.py",),
    ),
    Mutant(
        "poison put back for ever",
        "runtime/cell.py",
        "        if envelope.kills >= self.actor_class.poison_after:\n",
        "        if envelope.kills >= 1_000_000:\n",
        ("tests/test_semantics.py", "tests/test_actor_ends.py"),
    ),
    Mutant(
        "tags taken from people's words",
        "actors/rules/markers.py",
        '    if role != "assistant":\n',
        '    if role == "nobody":\n',
        ("tests/rules/test_markers.py",),
    ),
    Mutant(
        "host names compared by their beginning",
        "connectors/web/server.py",
        "    if name and name.lower() not in (*LOOPBACK_NAMES, settings.host):\n",
        "    if name and not name.lower().startswith(LOOPBACK_NAMES):\n",
        ("tests/test_http_hosts.py",),
    ),
    Mutant(
        "a blank secret taken",
        "runtime/secret.py",
        "    if not value:\n",
        "    if False:\n",
        ("tests/test_secret.py",),
    ),
    Mutant(
        "any host name served",
        "connectors/web/server.py",
        "    if name and name.lower() not in (*LOOPBACK_NAMES, settings.host):\n",
        "    if False:\n",
        ("tests/test_http_server.py",),
    ),
    Mutant(
        "a stream without its end taken for whole",
        "connectors/models/openai_stream.py",
        "        if not self.is_whole:\n",
        "        if False:\n",
        ("tests/test_openai_model.py", "tests/contracts/test_model.py"),
    ),
    Mutant(
        "a message without its stop taken for whole",
        "connectors/models/anthropic_stream.py",
        "        if not self._is_whole:\n",
        "        if False:\n",
        ("tests/test_model_streams.py", "tests/contracts/test_model.py"),
    ),
    Mutant(
        "a body without its end taken for whole",
        "connectors/models/google_stream.py",
        "        return self._is_ended and bool(self._finish_reason)\n",
        "        return bool(self._finish_reason)\n",
        ("tests/test_model_answers.py", "tests/test_model_faults.py"),
    ),
    Mutant(
        "lines without the last taken for whole",
        "connectors/models/ollama_stream.py",
        "        if not self._is_done:\n",
        "        if False:\n",
        ("tests/test_model_streams.py", "tests/contracts/test_model.py"),
    ),
    Mutant(
        "recorded steps not read",
        "actors/steps.py",
        "        if not (self._may_be_there and self._stream):\n"
        "            return []\n",
        "        return []\n",
        ("tests/stories/test_durable_turns.py", "tests/test_steps.py"),
    ),
    Mutant(
        "cut off tools simply run again",
        "actors/tool_calls.py",
        "        if call.id in self._in_doubt and not tool.spec.is_repeatable:\n",
        "        if False:\n",
        ("tests/stories/test_durable_turns.py", "tests/test_turn.py"),
    ),
    Mutant(
        "what may have been said is said again",
        "actors/rules/sending.py",
        '        if self._on_unknown == "hold":\n',
        "        if False:\n",
        ("tests/rules/test_sending.py", "tests/stories/test_outbox.py"),
    ),
    Mutant(
        "receipts not stored",
        "actors/courier.py",
        "        self._receipts.store(receipt, self, may_wait=is_repeatable)\n",
        "",
        ("tests/test_courier.py",),
    ),
    Mutant(
        "starts not counted",
        "actors/rules/message_state.py",
        "        self._attempts += 1\n",
        "        self._attempts += 0\n",
        ("tests/rules/test_message_state.py",),
    ),
    Mutant(
        "secrets kept in the audit",
        "actors/redaction.py",
        '        return self.redact(text) if self.has_texts else ""\n',
        '        return text if self.has_texts else ""\n',
        ("tests/stories/test_audit.py",),
    ),
    Mutant(
        "a name asked for again after the check",
        "connectors/fetch/network.py",
        "self._first_of(addresses, port, socket_options)\n",
        "self._first_of(await self._addresses(host, port), port, socket_options)\n",
        ("tests/fetch/test_fetch.py",),
    ),
    Mutant(
        "only the first address of a name checked",
        "connectors/fetch/network.py",
        "        for address in addresses:\n",
        "        for address in addresses[:1]:\n",
        ("tests/fetch/test_fetch.py",),
    ),
    Mutant(
        "addresses inside addresses not looked at",
        "connectors/fetch/addresses.py",
        "    if address.ipv4_mapped is not None or address in NAT64 or is_isatap:\n",
        "    if address.ipv4_mapped is not None:\n",
        ("tests/fetch/test_addresses.py",),
    ),
    Mutant(
        "keys sent on to where a redirect leads",
        "connectors/fetch/fetch.py",
        "            if answer.origin != target.origin:\n",
        "            if False:\n",
        ("tests/fetch/test_fetch.py",),
    ),
    Mutant(
        "links followed in agents' folders",
        "connectors/tools/workspace.py",
        "FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC\n",
        "FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC\n",
        ("tests/test_workspace.py",),
    ),
    Mutant(
        "tasks handed on without a limit",
        "actors/rules/loop_guard.py",
        "    if len(path) > limits.max_hops:\n",
        "    if False:\n",
        SIMULATION,
    ),
    Mutant(
        "agents heard in rooms where they are not",
        "actors/rules/activation.py",
        "        if not scene.is_there(self.agent):\n",
        "        if False:\n",
        SIMULATION,
    ),
    Mutant(
        "one conversation for all rooms",
        "actors/rules/keys.py",
        "        chat=inbound.address.chat,\n",
        '        chat="",\n',
        SIMULATION,
    ),
    Mutant(
        "small talk in rooms answered",
        "actors/rules/activation.py",
        "        if reason is None:\n"
        '            return Judged(self.agent, silence="uncalled")\n'
        "        return Judged(self.agent, reason)\n",
        '        return Judged(self.agent, reason or "always")\n',
        SIMULATION,
    ),
    Mutant(
        "groups: nobody yields to who is called",
        "actors/rules/activation.py",
        "        if self.yields_to:\n",
        "        if False:\n",
        ("tests/rules/test_activation.py",),
    ),
    Mutant(
        "groups: what was said in a thread is heard in all",
        "actors/rules/overheard.py",
        "        if each.inbound.address.thread != ear.thread:\n",
        "        if False:\n",
        ("tests/rules/test_overheard.py",),
    ),
    Mutant(
        "groups: who has a copy answers the original, too",
        "actors/hearing.py",
        "        return msgspec.structs.replace(unheard, copied=frozenset(has))\n",
        "        return unheard\n",
        ("tests/test_hearing.py",),
    ),
    Mutant(
        "groups: a model that is silent keeps the agent silent",
        "actors/rules/relevance.py",
        '{"relevance": True,',
        '{"relevance": False,',
        ("tests/stories/test_group_checks.py",),
    ),
    Mutant(
        "strangers let in",
        "actors/rules/admission.py",
        '    return Refuse("unknown_sender", waits, tuple(verdicts))\n',
        '    return Admit("listed", tuple(verdicts))\n',
        ("tests/rules/test_admission.py", "tests/stories/test_strangers.py"),
    ),
    Mutant(
        "a stranger's words taken in all the same",
        "actors/connector.py",
        "            gatekeeper.refuse_aloud(decision)\n            return False\n",
        "            gatekeeper.refuse_aloud(decision)\n",
        ("tests/stories/test_strangers.py",),
    ),
    Mutant(
        "one agent a way round to another",
        "actors/router.py",
        "        outcome = gatekeeper.permitted(outcome, inbound, self._services)\n",
        "        own = outcome\n"
        "        outcome = gatekeeper.permitted(outcome, inbound, self._services)\n"
        "        outcome = own if inbound.chain.agents else outcome\n",
        ("tests/stories/test_strangers.py",),
    ),
    Mutant(
        "colleagues: one book for all people",
        "actors/collaborating.py",
        "        sender=inbound.sender_id,\n",
        '        sender="",\n',
        ("tests/stories/test_consulting.py",),
    ),
    Mutant(
        "colleagues: who has answered is asked again",
        "actors/consultant.py",
        "        if (answered := self._book.answer(inbound_id)) is not None:\n",
        '        if (answered := self._book.answer("")) is not None:\n',
        ("tests/stories/test_consulting_resumed.py",),
    ),
    Mutant(
        "colleagues: a stop leaves them at work",
        "actors/colleagues.py",
        "                if not is_answered:\n",
        "                if is_answered:\n",
        ("tests/stories/test_consulting.py",),
    ),
    Mutant(
        "colleagues: who is asked has all tools",
        "actors/rules/safe_tools.py",
        '    reads = tool.effect == "read" and tool.name not in OF_COLLEAGUES\n',
        "    reads = tool.name not in OF_COLLEAGUES\n",
        ("tests/rules/test_safe_tools.py",),
    ),
    Mutant(
        "colleagues: questions cost no budget",
        "actors/colleagues.py",
        "        self.asked += 1  # before others ask\n",
        "        self.asked += 0  # before others ask\n",
        ("tests/stories/test_discussing.py",),
    ),
    Mutant(
        "colleagues: turns in the open are not counted",
        "actors/handing.py",
        "turns=chain.turns + 1",
        "turns=1",
        ("tests/stories/test_speaking_openly.py",),
    ),
    Mutant(
        "colleagues: each direction is a pair of its own",
        "actors/rules/pairs.py",
        "        one, other = sorted((self.source, self.target))\n",
        "        one, other = self.source, self.target\n",
        ("tests/rules/test_pairs.py",),
    ),
    Mutant(
        "colleagues: they may where nobody rules",
        "actors/rulings.py",
        'UNRULED = Ruling("unruled")\n',
        'UNRULED = Ruling("ok")\n',
        ("tests/test_collaboration.py",),
    ),
    Mutant(
        "a draft that goes on over its answer",
        "actors/drafting.py",
        "            reply.drafts.is_given_up = True  # the answer has come, it is no"
        " draft now\n",
        "",
        ("tests/stories/test_edited_drafts.py",),
    ),
    Mutant(
        "a draft that nobody finds after a crash",
        "actors/pen.py",
        "            is_doubtful = not await reply.record.put(Begun(number, agent))\n",
        "            is_doubtful = False\n",
        ("tests/test_drafting_crashes.py", "tests/stories/test_edited_drafts.py"),
    ),
    Mutant(
        "a draft that is over before its answer is stored to be said",
        "actors/courier.py",
        "        is_repeatable = self._transport.abilities.is_idempotent\n",
        "        is_repeatable = self._transport.abilities.is_idempotent\n"
        "        await self._drafting.conclude(delivery)\n",
        ("tests/stories/test_edited_drafts.py",),
    ),
    Mutant(
        "typing that sticks",
        "actors/typists.py",
        "            if until <= now:\n",
        "            if until < 0:\n",
        ("tests/test_typists.py",),
    ),
    Mutant(
        "typing while only people are waited for",
        "actors/signals.py",
        "            self._tell(is_over=True)\n",
        "            pass\n",
        ("tests/stories/test_presence.py",),
    ),
    Mutant(
        "code that a cut leaves open",
        "actors/rules/parts.py",
        '    return f"{text[:cut]}{end}", rest\n',
        '    return f"{text[:cut]}", rest\n',
        ("tests/rules/test_parts_code.py",),
    ),
)
