"""Mistakes about rooms: who hears and answers, agents among themselves, drafts."""

from __future__ import annotations

from tests.mutants.mistake import SIMULATION, Mutant

ROOMS = (
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
        "actors/deciding.py",
        "        outcome = gatekeeper.permitted(outcome, inbound, self._services)\n"
        "        if isinstance(outcome, Unrouted):\n",
        "        own = outcome\n"
        "        outcome = gatekeeper.permitted(outcome, inbound, self._services)\n"
        "        outcome = own if inbound.chain.agents else outcome\n"
        "        if isinstance(outcome, Unrouted):\n",
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
    Mutant(
        "agents that are asked about again and again",
        "actors/checking.py",
        "        checked = dict(known)\n",
        "        checked = dict[str, bool]()\n",
        ("tests/stories/test_group_checks.py",),
    ),
    Mutant(
        "words of one room that are quoted in another",
        "connectors/chat/matrix/quotes.py",
        "        place = room_id, event_id\n        if place",
        "        place = next((x for x in self._lines if x[1] == event_id), (room_id,"
        " event_id))\n        if place",
        ("tests/matrix/test_rooms_and_files.py",),
    ),
)
