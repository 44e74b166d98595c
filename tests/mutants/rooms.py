"""Mistakes about rooms: who hears and answers, agents among themselves, drafts."""

from __future__ import annotations

from tests.mutants.mistake import SIMULATION, Mutant

ROOMS = (
    Mutant(
        "tasks handed on without a limit",
        "actors/delegation/loop_guard.py",
        "    if len(path) > limits.max_hops:\n",
        "    if False:\n",
        SIMULATION,
    ),
    Mutant(
        "agents heard in rooms where they are not",
        "actors/rules/groups/activation.py",
        "        if not scene.is_there(self.agent):\n",
        "        if False:\n",
        SIMULATION,
    ),
    Mutant(
        "one conversation for all rooms",
        "actors/messages/keys.py",
        "        chat=inbound.address.chat,\n",
        '        chat="",\n',
        SIMULATION,
    ),
    Mutant(
        "small talk in rooms answered",
        "actors/rules/groups/activation.py",
        "        if reason is None:\n"
        '            return AgentVerdict(self.agent, silence="uncalled")\n'
        "        return AgentVerdict(self.agent, reason)\n",
        '        return AgentVerdict(self.agent, reason or "always")\n',
        SIMULATION,
    ),
    Mutant(
        "groups: nobody yields to who is called",
        "actors/rules/groups/activation.py",
        "        if self.yields_to:\n",
        "        if False:\n",
        ("tests/actors/rules/groups/test_activation.py",),
    ),
    Mutant(
        "groups: what was said in a thread is heard in all",
        "actors/rules/groups/overheard.py",
        "        if each.inbound.address.thread != ear.thread:\n",
        "        if False:\n",
        ("tests/actors/rules/groups/test_overheard.py",),
    ),
    Mutant(
        "groups: who has a copy answers the original, too",
        "actors/inbound/router.py",
        "        return msgspec.structs.replace(message, copied=frozenset(has))\n",
        "        return message\n",
        ("tests/actors/inbound/test_hearing.py",),
    ),
    Mutant(
        "groups: a model that is silent keeps the agent silent",
        "actors/rules/groups/relevance.py",
        '{"relevance": True,',
        '{"relevance": False,',
        ("tests/stories/inbound/test_group_checks.py",),
    ),
    Mutant(
        "strangers let in",
        "actors/people/access.py",
        '    return RefuseSender("unknown_sender", waits, tuple(verdicts), may_hint)\n',
        '    return Admit("listed", tuple(verdicts))\n',
        (
            "tests/actors/people/test_admission.py",
            "tests/stories/people/test_strangers.py",
        ),
    ),
    Mutant(
        "a stranger's words taken in all the same",
        "actors/inbound/connector.py",
        "        gatekeeper.refuse_aloud(decision)\n        return False\n",
        "        gatekeeper.refuse_aloud(decision)\n"
        "        self._store(inbound)\n        return None\n",
        ("tests/stories/people/test_strangers.py",),
    ),
    Mutant(
        "one agent a way round to another",
        "actors/inbound/router.py",
        "        outcome = admission.permitted(outcome, inbound, self._services)\n"
        "        if isinstance(outcome, Unrouted):\n",
        "        own = outcome\n"
        "        outcome = admission.permitted(outcome, inbound, self._services)\n"
        "        outcome = own if inbound.chain.agents else outcome\n"
        "        if isinstance(outcome, Unrouted):\n",
        ("tests/stories/people/test_strangers.py",),
    ),
    Mutant(
        "colleagues: one book for all people",
        "actors/delegation/messages.py",
        "        sender=inbound.sender_id,\n",
        '        sender="",\n',
        ("tests/stories/collaboration/test_consulting.py",),
    ),
    Mutant(
        "colleagues: who has answered is asked again",
        "actors/collaboration/consultant.py",
        "        if (answered := self._book.answer(inbound_id)) is not None:\n",
        '        if (answered := self._book.answer("")) is not None:\n',
        ("tests/stories/collaboration/test_consulting_resumed.py",),
    ),
    Mutant(
        "colleagues: a stop leaves them at work",
        "actors/collaboration/colleagues.py",
        "                if not is_answered:\n",
        "                if is_answered:\n",
        ("tests/stories/collaboration/test_consulting.py",),
    ),
    Mutant(
        "colleagues: who is asked has all tools",
        "actors/rules/prompt/tools.py",
        '    reads = tool.effect == "read" and tool.name not in OF_COLLEAGUES\n',
        "    reads = tool.name not in OF_COLLEAGUES\n",
        ("tests/actors/rules/prompt/test_safe_tools.py",),
    ),
    Mutant(
        "colleagues: questions cost no budget",
        "actors/collaboration/colleagues.py",
        "        self.asked += 1  # before others ask\n",
        "        self.asked += 0  # before others ask\n",
        ("tests/stories/collaboration/test_discussing.py",),
    ),
    Mutant(
        "colleagues: turns in the open are not counted",
        "actors/delegation/handing.py",
        "    each_turns = (turns - turned) // granted if granted else 0\n",
        "    each_turns = turns if granted else 0\n",
        ("tests/stories/inbound/test_speaking_openly.py",),
    ),
    Mutant(
        "colleagues: each direction is a pair of its own",
        "actors/delegation/pairs.py",
        "        one, other = sorted((self.source, self.target))\n",
        "        one, other = self.source, self.target\n",
        ("tests/actors/delegation/test_pairs.py",),
    ),
    Mutant(
        "colleagues: they may where nobody rules",
        "actors/delegation/rulings.py",
        'UNRULED = PairRuling("unruled")\n',
        'UNRULED = PairRuling("ok")\n',
        ("tests/actors/collaboration/test_collaboration.py",),
    ),
    Mutant(
        "a draft that goes on over its answer",
        "actors/outbound/drafts.py",
        "            reply.drafts.is_given_up = True  # it is no draft any more\n",
        "",
        ("tests/stories/outbound/test_edited_drafts.py",),
    ),
    Mutant(
        "a draft that nobody finds after a crash",
        "actors/outbound/drafts.py",
        "            is_doubtful = not await reply.record.put("
        "DraftBegun(number, agent))\n",
        "            is_doubtful = False\n",
        (
            "tests/actors/journal/test_drafting_crashes.py",
            "tests/stories/outbound/test_edited_drafts.py",
        ),
    ),
    Mutant(
        "a draft that is over before its answer is stored to be said",
        "actors/outbound/courier.py",
        "        is_repeatable = self._transport.abilities.is_idempotent\n",
        "        is_repeatable = self._transport.abilities.is_idempotent\n"
        "        await self._drafting.conclude(delivery)\n",
        ("tests/stories/outbound/test_edited_drafts.py",),
    ),
    Mutant(
        "typing that sticks",
        "actors/outbound/courier.py",
        "            if until <= now:\n",
        "            if until < 0:\n",
        ("tests/actors/outbound/test_typing_indicators.py",),
    ),
    Mutant(
        "typing while only people are waited for",
        "actors/session/progress.py",
        "            self._tell(is_over=True)\n",
        "            pass\n",
        ("tests/stories/outbound/test_presence.py",),
    ),
    Mutant(
        "code that a cut leaves open",
        "actors/journal/splitting.py",
        '    return f"{text[:cut]}{end}", rest\n',
        '    return f"{text[:cut]}", rest\n',
        ("tests/actors/journal/test_parts_code.py",),
    ),
    Mutant(
        "agents that are asked about again and again",
        "actors/inbound/relevance.py",
        "        checked = dict(known)\n",
        "        checked = dict[str, bool]()\n",
        ("tests/stories/inbound/test_group_checks.py",),
    ),
    Mutant(
        "words of one room that are quoted in another",
        "connectors/chat/matrix/inbound.py",
        "        place = room_id, event_id\n        if place",
        "        place = next((x for x in self._lines if x[1] == event_id), (room_id,"
        " event_id))\n        if place",
        ("tests/connectors/chat/matrix/test_rooms_and_files.py",),
    ),
)
