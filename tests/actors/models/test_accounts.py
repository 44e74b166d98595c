"""Proves who is asked: by preference, then the least used; never too soon again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, get_args

import pytest
from hypothesis import given, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from actors.errors import ModelFault
from actors.models.pool import (
    AUTH_LADDER,
    LADDER,
    LONGEST_HINT,
    LONGEST_QUICK,
    LONGEST_WAIT,
    MOST_CALLS,
    NEVER,
    PROBE,
    QUOTA_LADDER,
    ROUNDS,
    SHORT,
    Backend,
    BackendQuery,
    ModelOffer,
    NoBackend,
    Pool,
    TriedBackends,
    hint,
)

FAULTS = st.sampled_from(get_args(ModelFault))
OWN_FAULT = {"context", "vision", "content", "bad_request"}
A, B, C = (Backend(name, "smart") for name in ("a", "b", "c"))
CHEAP = Backend("a", "cheap")
HINTS = st.one_of(
    st.none(),
    st.sampled_from([0.0, 1.0, 3600.0, -5.0, 86_400.0, math.inf, math.nan]),
    st.floats(0, 100_000),
)


def make_pool(**preferences: int) -> Pool:
    """Make a pool of two models, the first on three accounts."""
    smart = ModelOffer(
        name="smart",
        model="smart-1",
        accounts=("a", "b", "c"),
        fallbacks=("cheap",),
    )
    cheap = ModelOffer(
        name="cheap",
        model="cheap-1",
        accounts=("a",),
        fallbacks=("smart",),  # settings refuse that; rules must end all the same
        takes_tools=False,
        takes_images=False,
    )
    return Pool({"smart": smart, "cheap": cheap}, preferences)


def ask(pool: Pool, now: float, tried: Iterable[Backend] = ()) -> Backend | NoBackend:
    return pool.choose(BackendQuery(model="smart", tried=frozenset(tried)), now)


def test_who_finds_nobody_to_ask_learns_why() -> None:
    pool = make_pool()
    for each in (A, B, C):
        pool.failed(each, "auth", None, 0, f"{each.account}: no key")
    assert ask(pool, 1) == NoBackend(NEVER, "auth", "a: no key")
    tries = TriedBackends("smart")
    tries.learn("auth", "a: no key")
    assert (tries.excuse, tries.why) == ("not available", "a: no key")
    tries.failed(A, "timeout", "", "a: slow")
    tries.learn("auth", "a: no key")
    assert (tries.excuse, tries.why) == ("it took too long", "a: slow")


def test_the_preferred_account_comes_first_and_then_the_least_used() -> None:
    pool = make_pool(b=-1, a=1, c=1)
    assert ask(pool, 0) == B
    pool.failed(B, "rate", None, 0)
    chosen: list[Backend] = []
    for _ in range(4):
        backend = ask(pool, 0)
        assert isinstance(backend, Backend)
        chosen.append(backend)
        pool.begin(backend, 0)
    assert chosen == [A, C, A, C]


@given(st.lists(st.tuples(st.sampled_from([A, B, C]), st.booleans())), st.data())
def test_among_equals_nobody_is_used_less_than_who_is_chosen(
    calls: list[tuple[Backend, bool]], data: st.DataObject
) -> None:
    pool, now = make_pool(), 0.0
    for backend, is_over in calls:
        now += data.draw(st.floats(0, 1000))
        pool.begin(backend, now)
        if is_over:
            pool.end(backend)
    chosen = ask(pool, now)
    assert isinstance(chosen, Backend)
    assert pool.use(chosen, now) == min(pool.use(each, now) for each in (A, B, C))


@given(FAULTS, HINTS, st.floats(0, 10_000))
def test_nobody_is_asked_sooner_than_it_asked_for_up_to_the_bound(
    kind: ModelFault, retry_after: float | None, later: float
) -> None:
    pool = make_pool()
    pool.failed(A, kind, retry_after, 100.0)
    asked = hint(retry_after)
    if asked is None or kind in OWN_FAULT | {"auth"}:
        return
    now = 100.0 + min(later, max(asked - 0.001, 0.0))
    if now < 100.0 + asked:
        assert pool.free_at(A) > now
        assert pool.last_resort_at(A) > now
        assert ask(pool, now, (B, C, CHEAP)) != A
    assert pool.free_at(A) >= 100.0 + asked


@given(HINTS)
def test_a_hint_is_never_garbage_and_never_longer_than_the_bound(
    retry_after: float | None,
) -> None:
    found = hint(retry_after)
    assert found is None or 0.0 <= found <= LONGEST_HINT
    if retry_after is not None and 0 <= retry_after <= LONGEST_HINT:
        assert found == retry_after


def test_a_late_success_does_not_end_what_the_provider_asked_for() -> None:
    pool = make_pool()
    pool.failed(A, "rate", 30.0, 0)
    pool.succeeded(A, 29.0)
    assert pool.free_at(A) == 30.0


def test_late_successes_free_no_quota_and_a_new_one_forgets_it() -> None:
    pool, now = make_pool(), 0.0
    waits: list[float] = []
    for _ in QUOTA_LADDER:
        for _ in range(3):  # calls that were under way together
            pool.failed(A, "quota", None, now)
            pool.succeeded(A, now + 1)
        waits.append(pool.free_at(A) - now)
        now = pool.free_at(A)
    assert waits == [*QUOTA_LADDER]
    pool.succeeded(A, now)
    pool.failed(A, "quota", None, now)
    assert pool.free_at(A) - now == QUOTA_LADDER[0]


def test_without_a_hint_the_cool_down_climbs_and_a_success_resets_it() -> None:
    pool, now = make_pool(), 0.0
    waits: list[float] = []
    for _ in range(5):
        pool.failed(A, "overload", None, now)
        waits.append(pool.free_at(A) - now)
        now = pool.free_at(A)
    assert waits == [*LADDER, LADDER[-1]]
    pool.succeeded(A, now)
    pool.failed(A, "overload", None, now)
    assert pool.free_at(A) - now == LADDER[0]


@given(st.integers(2, 60))
def test_calls_that_fail_together_are_one_step_of_the_ladder(count: int) -> None:
    pool = make_pool()
    for number in range(count):
        pool.failed(A, "rate", None, number / 100)
    assert pool.free_at(A) <= count / 100 + LADDER[0]


def test_an_old_failure_is_forgotten() -> None:
    pool = make_pool()
    for now in (0.0, 60.0, 10_000.0):
        pool.failed(A, "rate", None, now)
    assert pool.free_at(A) == 10_000.0 + LADDER[0]


def test_a_used_up_quota_is_left_alone_for_hours_and_then_a_day() -> None:
    pool, now = make_pool(), 0.0
    waits: list[float] = []
    for _ in range(4):
        pool.failed(A, "quota", None, now)
        waits.append(pool.last_resort_at(A) - now)
        now = pool.last_resort_at(A)
    assert waits == [*QUOTA_LADDER, QUOTA_LADDER[-1]]


@pytest.mark.parametrize("kind", ["network", "timeout"])
def test_a_broken_connection_is_a_matter_of_seconds(kind: ModelFault) -> None:
    pool = make_pool()
    pool.failed(A, kind, None, 0)
    assert pool.free_at(A) == SHORT


def test_a_senseless_answer_cools_nobody_else_s_backend() -> None:
    pool = make_pool()
    for now in range(20):
        pool.failed(A, "protocol", None, now)
    assert pool.cooling(20) == []
    assert ask(pool, 20) == A


def test_an_account_that_is_not_let_in_is_out_with_all_its_models() -> None:
    pool = make_pool()
    pool.failed(A, "auth", None, 0)
    assert pool.out == {"a"}
    assert pool.free_at(A) == pool.free_at(CHEAP) == AUTH_LADDER[0]
    assert set(pool.cooling(1)) == {A, CHEAP}
    for each in (B, C):
        pool.failed(each, "auth", None, 0)
    assert ask(pool, 1) == NoBackend(NEVER, "auth"), (
        "nobody waits for a key to be mended"
    )


def test_an_account_that_is_not_let_in_is_asked_again_less_and_less() -> None:
    pool, now, waits = make_pool(), 0.0, list[float]()
    for _ in range(len(AUTH_LADDER) + 1):
        for _ in range(3):  # calls that fail together
            pool.failed(A, "auth", None, now)
        waits.append(pool.free_at(A) - now)
        now = pool.free_at(A)
        assert isinstance(ask(pool, now), Backend)
    assert waits == [*AUTH_LADDER, AUTH_LADDER[-1]]
    pool.succeeded(CHEAP, now)
    assert (pool.out, pool.cooling(now)) == (frozenset(), [])
    pool.failed(A, "auth", None, now)
    assert pool.free_at(A) - now == AUTH_LADDER[0]


def test_calls_that_began_before_a_key_was_refused_do_not_prove_it() -> None:
    pool = make_pool()
    pool.begin(A, 0)
    pool.failed(A, "auth", None, 1)
    pool.succeeded(A, 2)
    assert pool.out == {"a"}, "owners are not told that the key works"
    assert pool.free_at(A) == 2, "but the next call may find out"
    probe = pool.begin(A, 2)
    assert probe == 2
    pool.failed(A, "auth", None, 3)
    assert pool.free_at(A) - 3 == AUTH_LADDER[1], "each refusal is a step"
    now = pool.free_at(A)
    pool.succeeded(A, now)
    assert pool.out == frozenset()


@pytest.mark.parametrize("kind", sorted(OWN_FAULT))
def test_the_request_s_own_fault_cools_nobody_down(kind: ModelFault) -> None:
    pool = make_pool()
    pool.failed(A, kind, 60.0, 0)
    assert pool.cooling(0) == []


ONLY = Backend("a", "only")


class OneBackend(RuleBasedStateMachine):
    """Asks one backend: all may after an answer, and one at a time after a failure."""

    def __init__(self) -> None:
        super().__init__()
        only = ModelOffer(name="only", model="m", accounts=("a",))
        self.pool = Pool({"only": only}, {})
        self.now, self.is_failed = 0.0, False
        self.key_until = -math.inf
        self.calls: list[float | None] = []
        """When each call under way began, if it is a probe."""

        self.probe: float | None = None

    def choose(self, now: float) -> Backend | NoBackend:
        return self.pool.choose(BackendQuery(model="only"), now)

    @rule(seconds=st.sampled_from([0.1, 0.6, 1.0, PROBE, 61.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def begin(self) -> None:
        now, chosen = self.now, self.choose(self.now)
        if isinstance(chosen, NoBackend):
            assert self.is_failed, "a closed circuit lets everybody in"
            assert chosen.at > now
            assert chosen.at == NEVER or self.choose(chosen.at) == ONLY
            return
        assert self.probe is None or now - self.probe >= PROBE
        is_probe = self.is_failed and self.probe is None
        begun = self.pool.begin(ONLY, now)
        assert begun == (now if is_probe else None)
        self.calls.append(begun)
        self.probe = now if is_probe else self.probe

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0, 9), fault=st.sampled_from(["", "", "overload", "auth"]))
    def end(self, which: int, fault: Literal["", "overload", "auth"]) -> None:
        self._over(which)
        is_late = not fault and self.now < self.key_until  # it proves no key
        self.is_failed, self.probe = bool(fault) or is_late, None
        if fault:
            self.pool.failed(ONLY, fault, None, self.now)
        else:
            self.pool.succeeded(ONLY, self.now)
        if fault == "auth":
            self.key_until = self.pool._circuits[ONLY.account].required_until
        elif not fault:
            self.key_until = -math.inf  # who overloads it says nothing of the key

    @precondition(lambda self: self.calls)
    @rule(which=st.integers(0, 9))
    def cancel(self, which: int) -> None:
        probed_at = self._over(which)
        if probed_at is not None and probed_at == self.probe:
            self.probe = None

    def _over(self, which: int) -> float | None:
        probed_at = self.calls.pop(which % len(self.calls))
        self.pool.end(ONLY, probed_at)
        return probed_at


TestOneBackend = OneBackend.TestCase


def test_fallbacks_come_before_a_last_resort() -> None:
    pool = make_pool()
    for each in (A, B, C):
        pool.failed(each, "overload", None, 0)
    assert ask(pool, 1) == CHEAP
    pool.failed(CHEAP, "overload", None, 1)
    assert ask(pool, 1.1) == A  # its guess says a minute, but there is nothing else
    assert ask(pool, 1.1, (A, B, C)) == NoBackend(0.5, "overload")


@given(st.integers(1, 40))
def test_with_nothing_else_left_a_guess_is_never_long(failures: int) -> None:
    pool, now = make_pool(), 0.0
    for _ in range(failures):
        pool.failed(A, "rate", None, now)
        now += 1.0
    assert pool.last_resort_at(A) - now <= LONGEST_QUICK


def test_who_cannot_do_what_is_needed_comes_last() -> None:
    pool = make_pool()
    tools = BackendQuery(model="cheap", needs_tools=True)
    assert pool.choose(BackendQuery(model="cheap"), 0) == CHEAP
    assert pool.choose(tools, 0) == A
    assert pool.line(BackendQuery(model="cheap", needs_images=True)) == [
        "smart",
        "cheap",
    ]
    for each in (A, B, C):
        pool.failed(each, "quota", None, 0)
    assert pool.choose(tools, 0) == CHEAP  # better without tools than not at all


@given(st.data())
def test_rotation_is_bounded_whatever_fails_how_ever(data: st.DataObject) -> None:
    pool, tries, now = make_pool(), TriedBackends("smart"), 0.0
    calls: list[Backend] = []
    rounds: list[set[Backend]] = [set()]
    while not tries.is_exhausted:
        wanted = BackendQuery(model=tries.model, tried=tries.tried)
        chosen = pool.choose(wanted, now)
        if isinstance(chosen, NoBackend):
            wait = tries.wait(chosen.at - now)
            if wait is None:
                break
            assert wait >= 0.0
            now += wait
            rounds.append(set())
            continue
        assert chosen not in rounds[-1]
        rounds[-1].add(chosen)
        calls.append(chosen)
        kind = data.draw(FAULTS)
        pool.failed(chosen, kind, data.draw(HINTS), now)
        if tries.failed(chosen, kind, "") == "refuse":
            break
    assert len(calls) <= MOST_CALLS
    assert len(rounds) <= ROUNDS
    assert now <= LONGEST_WAIT  # in all


def test_a_transcript_that_is_too_long_goes_to_the_larger_model() -> None:
    tries = TriedBackends("smart")
    assert tries.failed(A, "context", "large") == "larger"
    assert tries.model == "large"
    assert tries.failed(Backend("a", "large"), "context", "") == "refuse"


@given(
    st.lists(st.tuples(st.sampled_from([A, B, C, CHEAP]), FAULTS, HINTS), max_size=12),
    st.sets(st.sampled_from("abc")).filter(bool),
    st.frozensets(st.sampled_from("abc")),
)
def test_of_who_stays_all_is_known_and_of_others_nothing(
    faults: list[tuple[Backend, ModelFault, float | None]],
    accounts: set[str],
    renewed: frozenset[str],
) -> None:
    pool, before = make_pool(), make_pool()
    for backend, kind, seconds in faults:
        for each in (pool, before):
            each.begin(backend, 0.0)
            each.failed(backend, kind, seconds, 0.0)
    offer = ModelOffer(name="smart", model="smart-2", accounts=tuple(sorted(accounts)))
    pool.reoffer({"smart": offer}, {}, renewed)
    for backend in (A, B, C, CHEAP):
        stays = backend.account in accounts - renewed and backend != CHEAP
        known = before if stays else make_pool()
        if backend.account not in pool.out:
            assert pool.free_at(backend) == known.free_at(backend)
        assert pool.use(backend, 1.0) == known.use(backend, 1.0)
    assert pool.out == before.out & (accounts - renewed)
    assert pool.has("smart")
    assert not pool.has("cheap")


@pytest.mark.parametrize("has_own_tools", [False, True])
def test_a_program_with_tools_of_its_own_is_not_passed_over(
    *, has_own_tools: bool
) -> None:
    program = ModelOffer(
        name="program",
        model="",
        accounts=("p",),
        fallbacks=("plain",),
        takes_tools=False,
        has_own_tools=has_own_tools,
    )
    plain = ModelOffer(name="plain", model="plain-1", accounts=("a",))
    pool = Pool({"program": program, "plain": plain}, {})
    chosen = pool.choose(BackendQuery(model="program", needs_tools=True), 0)
    assert isinstance(chosen, Backend)
    assert chosen.model == ("program" if has_own_tools else "plain")


def test_the_fallbacks_of_fallbacks_are_asked_too() -> None:
    names = ("first", "second", "third", "fourth")
    after = (*names[1:], "first")
    offers = {
        name: ModelOffer(name=name, model=name, accounts=(name,), fallbacks=(then,))
        for name, then in zip(names, after, strict=True)
    }
    pool = Pool(offers, {})
    assert pool.line(BackendQuery(model="first")) == [*names]
    for name in names[:3]:
        pool.failed(Backend(name, name), "auth", None, 0)
    assert pool.choose(BackendQuery(model="first"), 1) == Backend("fourth", "fourth")
