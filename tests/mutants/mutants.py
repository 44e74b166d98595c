"""Mistakes that the tests must find: each a line of ours, made wrong on purpose.

The first fourteen are the classes that lost, doubled or leaked messages in systems of
this kind; the rest are this program's own promises: about durable turns, tools and
rooms.
"""

from __future__ import annotations

from tests.mutants.by_itself import BY_ITSELF
from tests.mutants.kernel import KERNEL
from tests.mutants.mistake import Mutant
from tests.mutants.promises import PROMISES
from tests.mutants.rooms import ROOMS
from tests.mutants.schedule import SCHEDULE

STORE = ("tests/contracts", "tests/runtime/sqlite/test_sqlite_store.py")

MUTANTS = (
    Mutant(
        "acknowledged before it is committed",
        "actors/inbound/connector.py",
        "        reply = self.defer_reply()\n",
        "        reply = self.defer_reply()\n        reply.offer(True)\n",
        ("tests/actors/inbound/test_connector.py",),
    ),
    Mutant(
        "no deduplication",
        "runtime/sql/write.py",
        "    key = (row.id, row.connector, row.platform_id, row",
        "    key = (row.id, row.connector, row.platform_id + row.id, row",
        STORE,
    ),
    Mutant(
        "deduplication in memory only",
        "runtime/sqlite/file.py",
        "            migrate(db, self.path, self.migrations)\n",
        "            migrate(db, self.path, self.migrations)\n"
        "            db.execute('UPDATE inbox SET platform_id = hex(randomblob(8))')\n",
        STORE,
    ),
    Mutant(
        "the newest of a mailbox first",
        "runtime/actor/mailbox.py",
        "            item = self.rest.popleft()\n",
        "            item = self.rest.pop()\n",
        ("tests/runtime/actor/test_mailbox.py", "tests/house/kernel/test_semantics.py"),
    ),
    Mutant(
        "one conversation for all senders",
        "actors/messages/keys.py",
        '        sender=inbound.sender_id if by_sender else "",\n',
        '        sender="",\n',
        (
            "tests/actors/messages/test_keys.py",
            "tests/stories/inbound/test_many_people.py",
        ),
    ),
    Mutant(
        "mailboxes without a bound",
        "runtime/actor/mailbox.py",
        "        if self.count >= self.capacity:\n            return False\n"
        "        self.count += 1\n",
        "        self.count += 1\n",
        ("tests/runtime/actor/test_mailbox.py", "tests/house/kernel/test_semantics.py"),
    ),
    Mutant(
        "a full disk passed over",
        "runtime/sqlite/store.py",
        "            job.error = translate(error, self.file.path)\n"
        "            job.error.__cause__ = error\n",
        "            pass\n",
        ("tests/runtime/sqlite/test_sqlite_faults.py",),
    ),
    Mutant(
        "tried again without end",
        "actors/messages/state.py",
        "        if self.attempts >= self._limit:\n"
        '            return GiveUp("dead", event.reason)\n',
        "",
        ("tests/actors/messages/test_message_state.py",),
    ),
    Mutant(
        "poison put back for ever",
        "runtime/actor/cell.py",
        "        if envelope.kills >= self.actor_class.poison_after:\n",
        "        if envelope.kills >= 1_000_000:\n",
        ("tests/house/kernel/test_semantics.py", "tests/runtime/test_actor_ends.py"),
    ),
    Mutant(
        "tags taken from people's words",
        "actors/rules/markers/parser.py",
        '    if role != "assistant":\n',
        '    if role == "nobody":\n',
        ("tests/actors/rules/markers/test_markers.py",),
    ),
    Mutant(
        "host names compared by their beginning",
        "connectors/web/request.py",
        "    if name and name.lower() not in (*LOOPBACK_NAMES, settings.host):\n",
        "    if name and not name.lower().startswith(LOOPBACK_NAMES):\n",
        ("tests/house/test_http_hosts.py",),
    ),
    Mutant(
        "a blank secret taken",
        "runtime/secret.py",
        "    if not value:\n",
        "    if False:\n",
        ("tests/runtime/test_secret.py",),
    ),
    Mutant(
        "a webhook taken whoever signed it",
        "actors/webhooks/signature.py",
        "    if not (is_right and ID.fullmatch(name) and TIME.fullmatch(at)):\n",
        "    if not (ID.fullmatch(name) and TIME.fullmatch(at)):\n",
        ("tests/actors/webhooks/test_webhook_signature.py",),
    ),
    Mutant(
        "a webhook of any time taken",
        "actors/webhooks/signature.py",
        "    if int(at) < now - window:\n",
        "    if False:\n",
        ("tests/actors/webhooks/test_webhook_signature.py",),
    ),
    Mutant(
        "a delivery that comes again done again",
        "actors/webhooks/intake.py",
        '    return f"{BEGINNING} {trigger.webhook} {agent} {trigger.key}"\n',
        '    return f"{BEGINNING} {trigger.webhook} {agent} {id(trigger)}"\n',
        ("tests/actors/webhooks/test_webhook_intake.py",),
    ),
    Mutant(
        "any host name served",
        "connectors/web/request.py",
        "    if name and name.lower() not in (*LOOPBACK_NAMES, settings.host):\n",
        "    if False:\n",
        ("tests/connectors/web/test_http_server.py",),
    ),
    Mutant(
        "a stream without its end taken for whole",
        "connectors/models/openai/model.py",
        "        if not self.is_whole:\n",
        "        if False:\n",
        (
            "tests/connectors/models/test_openai_model.py",
            "tests/contracts/test_model.py",
        ),
    ),
    Mutant(
        "a response that was given up taken for whole",
        "connectors/models/openai/responses.py",
        '        if self._stopped not in {"completed", LIMIT}:\n',
        "        if False:\n",
        (
            "tests/connectors/models/test_openai_responses.py",
            "tests/contracts/test_model.py",
        ),
    ),
    Mutant(
        "what a model thought told in another conversation",
        "connectors/models/format.py",
        "    return (request.model, request.conversation, call_id)\n",
        '    return (request.model, "", call_id)\n',
        (
            "tests/connectors/models/test_model_requests.py",
            "tests/connectors/models/test_openai_responses.py",
        ),
    ),
    Mutant(
        "a program's sum counted with each message",
        "connectors/models/program.py",
        "        before = session.taken if self.tells_sum else Usage()\n",
        "        before = Usage()\n",
        ("tests/connectors/models/test_cli_events.py",),
    ),
    Mutant(
        "a message without its stop taken for whole",
        "connectors/models/anthropic.py",
        "        if not self._is_whole:\n",
        "        if False:\n",
        (
            "tests/actors/messages/test_model_streams.py",
            "tests/contracts/test_model.py",
        ),
    ),
    Mutant(
        "a body without its end taken for whole",
        "connectors/models/google.py",
        "        return self._is_ended and bool(self._finish_reason)\n",
        "        return bool(self._finish_reason)\n",
        (
            "tests/connectors/models/test_model_answers.py",
            "tests/actors/models/test_model_faults.py",
        ),
    ),
    Mutant(
        "lines without the last taken for whole",
        "connectors/models/ollama.py",
        "        if not self._is_done:\n",
        "        if False:\n",
        (
            "tests/actors/messages/test_model_streams.py",
            "tests/contracts/test_model.py",
        ),
    ),
    Mutant(
        "recorded steps not read",
        "actors/turn/steps.py",
        "        if not (self._may_be_there and self._stream):\n"
        "            return []\n",
        "        return []\n",
        ("tests/stories/turn/test_durable_turns.py", "tests/actors/turn/test_steps.py"),
    ),
    Mutant(
        "cut off tools simply run again",
        "actors/turn/tools.py",
        "        if call.id in self._in_doubt and not tool.spec.is_repeatable:\n",
        "        if False:\n",
        (
            "tests/stories/turn/test_durable_turns.py",
            "tests/actors/turn/test_turn_actor.py",
        ),
    ),
    Mutant(
        "what may have been said is said again",
        "actors/outbound/retry.py",
        '        if self._on_unknown == "hold":\n',
        "        if False:\n",
        (
            "tests/actors/outbound/test_sending.py",
            "tests/stories/outbound/test_outbox.py",
        ),
    ),
    Mutant(
        "what was dropped while it waited is said",
        "actors/outbound/retry.py",
        "        needs_mark = self._has_waited or not self._is_repeatable\n",
        "        needs_mark = not self._is_repeatable\n",
        (
            "tests/actors/outbound/test_sending.py",
            "tests/actors/outbound/test_deliveries_by_hand.py",
        ),
    ),
    Mutant(
        "what was dropped and is wanted again is not said",
        "actors/outbound/courier.py",
        "            self._receipts.forget(delivery_id)\n",
        "            pass\n",
        ("tests/actors/outbound/test_deliveries_by_hand.py",),
    ),
    Mutant(
        "a commit that the disk refuses is given up",
        "runtime/actor/committer.py",
        "                self.actor.after("
        "self.committer.retry_every, CommitDue(self.submit))\n",
        "                pass\n",
        ("tests/runtime/actor/test_committer.py",),
    ),
    Mutant(
        "receipts not stored",
        "actors/outbound/courier.py",
        "        self._receipts.store(receipt, self, may_wait=is_repeatable)\n",
        "",
        ("tests/actors/outbound/test_courier.py",),
    ),
    Mutant(
        "starts not counted",
        "actors/messages/state.py",
        "        self.attempts += 1\n",
        "        self.attempts += 0\n",
        ("tests/actors/messages/test_message_state.py",),
    ),
    Mutant(
        "secrets kept in the audit",
        "actors/journal/records.py",
        '        input=redact(body.input) if has_texts else "",\n',
        '        input=body.input if has_texts else "",\n',
        ("tests/stories/operations/test_audit.py",),
    ),
    Mutant(
        "a name asked for again after the check",
        "connectors/fetch/fetcher.py",
        "self._first_of(addresses, port, socket_options)\n",
        "self._first_of(await self._addresses(host, port), port, socket_options)\n",
        ("tests/connectors/fetch/test_fetch.py",),
    ),
    Mutant(
        "only the first address of a name checked",
        "connectors/fetch/fetcher.py",
        "        for address in addresses:\n",
        "        for address in addresses[:1]:\n",
        ("tests/connectors/fetch/test_fetch.py",),
    ),
    Mutant(
        "addresses inside addresses not looked at",
        "connectors/fetch/addresses.py",
        "    if address.ipv4_mapped is not None or address in NAT64 or is_isatap:\n",
        "    if address.ipv4_mapped is not None:\n",
        ("tests/connectors/fetch/test_addresses.py",),
    ),
    Mutant(
        "keys sent on to where a redirect leads",
        "connectors/fetch/fetcher.py",
        "            if answer.origin != target.origin:\n",
        "            if False:\n",
        ("tests/connectors/fetch/test_fetch.py",),
    ),
    Mutant(
        "links followed in agents' folders",
        "connectors/tools/workspace/workspace.py",
        "FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC\n",
        "FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC\n",
        ("tests/connectors/tools/test_workspace.py",),
    ),
    *KERNEL,
    *ROOMS,
    *SCHEDULE,
    *BY_ITSELF,
    *PROMISES,
)
