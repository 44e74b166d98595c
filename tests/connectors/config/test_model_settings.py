"""Proves what may be set of models, accounts and budgets, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from actors.models.budget import Budget, Limit
from actors.models.catalogue import OWN, Prices
from connectors.app.models import make_catalogue
from connectors.config.models import load_prices, prices_of
from connectors.config.shipped import shipped_prices
from connectors.models.program import ProgramPlace
from connectors.settings.load import load_app
from runtime.clock import SystemClock
from runtime.errors import SettingsError
from tests.fakes.tools.sandbox import FakeSandbox

if TYPE_CHECKING:
    from pathlib import Path

    from connectors.config.app import AppConfig
    from runtime.config.loader import Settings

BASE = """\
default_agent = "anna"
[connectors.terminal]
kind = "terminal"
[agents.anna]
prompt = "You are Anna."
model = "smart"
[accounts.work]
kind = "openai"
api_key = { env = "GOOD_KEY" }
[accounts.home]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
preference = -1
[models.smart]
kind = "openai"
model = "gpt-4.1"
accounts = ["work", "home"]
fallbacks = ["cheap"]
[models.cheap]
kind = "anthropic"
model = "claude-3-5-haiku-latest"
base_url = "http://127.0.0.1:1"
larger = "smart"
takes_tools = false
"""


def load(folder: Path, more: str = "", base: str = BASE) -> AppConfig:
    path = folder / "callboard.toml"
    path.write_text(base + more, encoding="utf-8")
    return load_app(path, {"GOOD_KEY": "a-long-enough-key"}).value


def refusal(folder: Path, more: str, base: str = BASE) -> str:
    with pytest.raises(SettingsError) as caught:
        load(folder, more, base)
    return "\n".join(f"{each.text} | {each.hint}" for each in caught.value.problems)


async def test_models_share_the_clients_of_their_accounts(tmp_path: Path) -> None:
    more = """
        [models.other]
        kind = "openai"
        model = "gpt-4.1-mini"
        accounts = ["work"]
    """
    config = load(tmp_path, more)
    catalogue = make_catalogue(
        config, SystemClock(), ProgramPlace(FakeSandbox(), tmp_path)
    )
    assert set(catalogue.clients) == {"work", "home", "cheap"}
    assert catalogue.preferences == {"work": 0, "home": -1}
    smart, cheap = catalogue.offers["smart"], catalogue.offers["cheap"]
    assert (smart.model, smart.accounts) == ("gpt-4.1", ("work", "home"))
    assert (smart.fallbacks, cheap.larger) == (("cheap",), "smart")
    assert (cheap.accounts, cheap.takes_tools) == (("cheap",), False)
    assert catalogue.prices["smart"].input == 2.0  # by the list that comes along
    assert catalogue.prices["cheap"].cached == 0.08


def test_a_model_costs_the_same_over_each_api_of_its_provider(tmp_path: Path) -> None:
    table = '[models.more]\nkind = "openai_responses"\nmodel = "gpt-4.1"\n'
    config = load(tmp_path, table)
    listed = load_prices(shipped_prices())
    assert prices_of(config.models["more"], listed) == listed.find("openai", "gpt-4.1")


@pytest.mark.parametrize(
    ("prices", "expected"),
    [
        ("", Prices(2.0, 8.0, 0.5, "v1")),
        ("input_price = 1.0", Prices(1.0, 8.0, None, OWN)),
        ("output_price = 0.0", Prices(2.0, 0.0, 0.5, OWN)),
        ("input_price = 1.0\ncached_price = 0.1", Prices(1.0, 8.0, 0.1, OWN)),
    ],
)
def test_a_model_s_own_prices_win(
    prices: str, expected: Prices, tmp_path: Path
) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'version = "v1"\n[[prices]]\nkind = "openai"\nmodel = "gpt-4.1"\n'
        "input = 2.0\noutput = 8.0\ncached = 0.5\n",
        encoding="utf-8",
    )
    config = load(tmp_path, '[ledger]\nprices = "own.toml"\n' + MINE + prices)
    assert config.ledger.prices == own
    assert prices_of(config.models["mine"], load_prices(own)) == expected


MINE = '[models.mine]\nkind = "openai"\nmodel = "gpt-4.1"\n'


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (MINE + 'accounts = ["wrok"]', "no account 'wrok' | did you mean 'work'?"),
        (MINE + 'accounts = ["work", "work"]', "account 'work' stands here twice"),
        (MINE + 'accounts = ["work"]\nidle_timeout = 5', "idle_timeout belongs to"),
        (MINE + 'fallbacks = ["chaep"]', "no model 'chaep' | did you mean 'cheap'?"),
        (MINE + 'fallbacks = ["mine"]', "model 'mine' refers to itself"),
        (MINE + 'larger = "smarter"', "no model 'smarter' | did you mean 'smart'?"),
        ('[accounts.cheap]\nkind = "google"', "there is an account 'cheap'"),
        ('[accounts.x]\nkind = "openai"\nbase_url = "ftp://x"', "no http or https"),
        (
            '[models.b]\nkind = "google"\nmodel = "x"\naccounts = ["work"]',
            "account 'work' is of kind 'openai' | this model is 'google'",
        ),
        ('[ledger]\ntime_zone = "Europe/Berlim"', "no time zone 'Europe/Berlim'"),
        ('[ledger]\nprices = "gone.toml"', "there is no file"),
    ],
)
def test_what_does_not_go_together_is_told(
    more: str, words: str, tmp_path: Path
) -> None:
    assert words in refusal(tmp_path, more)


def test_a_wrong_price_list_is_told_before_anything_starts(tmp_path: Path) -> None:
    wrong = '[[prices]]\nkind = "openai"\nmodel = "x"\ninput = "cheap"\noutput = 1\n'
    (tmp_path / "own.toml").write_text('version = "v1"\n' + wrong)
    told = refusal(tmp_path, '[ledger]\nprices = "own.toml"')
    assert "this list is wrong" in told
    assert "own.toml:5:9: prices[0].input must be a number" in told


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ('fallbacks = ["smart"]', "fallbacks go in a circle: cheap → smart → cheap"),
        ('fallbacks = ["mine"]', "fallbacks go in a circle: cheap → mine → smart"),
    ],
)
def test_fallbacks_never_go_in_a_circle(field: str, words: str, tmp_path: Path) -> None:
    base = BASE + field + "\n" + MINE + 'fallbacks = ["smart"]'
    assert words in refusal(tmp_path, "", base)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ('scope = "all"', "this budget limits nothing"),
        ('scope = "all"\nhard_usd = 1\nsoft_usd = 2', "soft_usd is above hard_usd"),
        ('scope = "all"\nhard_usd = 1\nwho = "anna"', "a budget for all names nobody"),
        ('scope = "agent"\nhard_usd = 1\nwho = "ana"', "no agent fits 'ana'"),
        ('scope = "user"\nhard_usd = 1\nwho = "sam"', "'sam' is nobody"),
        ('scope = "connector"\nhard_usd = 1\nwho = "htp"', "no connector fits 'htp'"),
        ('scope = "all"\nsoft_usd = 1\non_soft = "downgrade"', "there is no model ''"),
        ('scope = "all"\nsoft_usd = 1\ndowngrade_to = "cheap"', "is never used"),
    ],
)
def test_a_budget_that_makes_no_sense_is_told(
    budget: str, words: str, tmp_path: Path
) -> None:
    assert words in refusal(tmp_path, "[[budgets]]\n" + budget)


UNKNOWN = '[models.new]\nkind = "openai"\nmodel = "of-tomorrow"\n'
NO_PRICE = "hard_usd cannot hold: model 'new' has no price | "


@pytest.mark.parametrize(
    "use",
    [
        '[compaction]\nmodel = "new"\n',
        '[agents.ben.routing]\nclassifier = "new"\n',
        '[agents.ben.groups]\ncheck_model = "new"\n',
        '[agents.ben.heartbeat]\nmodel = "new"\n',
        '[agents.ben.scheduled]\nmodel = "new"\n',
        '[agents.ben.autonomous]\nplanner = "new"\n',
        '[hiring]\nwho = "owners"\nmodels = ["n*"]\n',
    ],
)
def test_a_budget_in_dollars_sees_each_model_that_the_settings_may_ask(
    use: str, tmp_path: Path
) -> None:
    usual = '[models.usual]\nkind = "openai"\nmodel = "gpt-4.1"\n'
    agent = '[agents.ben]\nprompt = "x"\nmodel = "usual"\nis_conductor = true\n'
    text = BASE + UNKNOWN + usual + agent + use
    (tmp_path / "c.toml").write_text(
        f'{text}[[budgets]]\nscope = "all"\nhard_usd = 1\n'
    )
    with pytest.raises(SettingsError) as caught:
        load_app(tmp_path / "c.toml", {"GOOD_KEY": "a-long-enough-key"})
    assert NO_PRICE.removesuffix(" | ") in str(caught.value.problems[0])


@pytest.mark.parametrize(("program", "count"), [("codex", 1), ("claude", 0)])
def test_a_budget_in_dollars_warns_of_a_program_that_may_not_tell_its_cost(
    program: str, count: int, tmp_path: Path
) -> None:
    model = f'[models.usual]\nkind = "cli"\ncommand = ["/opt/{program}"]\n'
    agent = '[agents.ben]\nprompt = "x"\nmodel = "usual"\n'
    text = f'{BASE}{model}{agent}[[budgets]]\nscope = "all"\nhard_usd = 1\n'
    (tmp_path / "c.toml").write_text(text)
    found = load_app(tmp_path / "c.toml", {"GOOD_KEY": "a-long-enough-key"})
    told = [each for each in found.warnings if "budgets[0]" in str(each)]
    assert len(told) == count
    assert all("hard_tokens" in (each.hint or "") for each in told)


@pytest.mark.parametrize(
    ("rest", "count"),
    [
        ('scope = "all"\n', 1),
        ('scope = "user"\nwho = "http/sam"\n', 1),
        ('scope = "agent"\nwho = "b*"\n', 1),
        ('scope = "all"\n[commands]\nmodels = ["us*"]\n', 0),
        ('scope = "all"\nhard_tokens = 9\n', 0),
    ],
)
def test_a_budget_in_dollars_sees_each_model_that_people_may_choose(
    rest: str, count: int, tmp_path: Path
) -> None:
    usual = '[models.usual]\nkind = "openai"\nmodel = "gpt-4.1"\n'
    agent = '[agents.ben]\nprompt = "x"\nmodel = "usual"\n'
    text = f"{BASE}{UNKNOWN}{usual}{agent}[[budgets]]\nhard_usd = 1\n{rest}"
    (tmp_path / "c.toml").write_text(text)
    problems: tuple[SettingsError, ...] = ()
    try:
        load_app(tmp_path / "c.toml", {"GOOD_KEY": "a-long-enough-key"})
    except SettingsError as error:
        problems = error.problems
    assert [each.text for each in problems] == [
        f"budgets[0]: {NO_PRICE.removesuffix(' | ')}"
    ] * count
    assert all("commands.models" in (each.hint or "") for each in problems)


def company(tmp_path: Path, budget: str, model: str = UNKNOWN) -> Settings[AppConfig]:
    """Load a company in which ben may be answered by a model that has no price."""
    (tmp_path / "c.toml").write_text(
        BASE + model + f"[[budgets]]\n{budget}\n"
        '[models.usual]\nkind = "openai"\nmodel = "gpt-4.1"\nfallbacks = ["new"]\n'
        '[agents.ben]\nprompt = "x"\nmodel = "usual"\n'
    )
    return load_app(tmp_path / "c.toml", {"GOOD_KEY": "a-long-enough-key"})


@pytest.mark.parametrize(
    "budget",
    [
        'scope = "user"\nhard_usd = 1',
        'scope = "all"\nhard_usd = 1',
        'scope = "agent"\nwho = "b*"\nhard_usd = 1',
    ],
)
def test_a_budget_in_dollars_on_a_model_without_a_price_is_wrong(
    budget: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as caught:
        company(tmp_path, budget)
    (problem,) = caught.value.problems
    assert f"{problem.text} | {problem.hint}".startswith(f"budgets[0]: {NO_PRICE}")
    assert "models.new" in (problem.hint or "")


@pytest.mark.parametrize(
    ("budget", "model", "count"),
    [
        (
            'scope = "agent"\nwho = "anna"\nhard_usd = 1\n[commands]\nmodels = []',
            UNKNOWN,
            0,
        ),
        ('scope = "all"\nhard_tokens = 1', UNKNOWN, 0),
        ('scope = "all"\nhard_usd = 1\nhard_tokens = 1', UNKNOWN, 1),
        ('scope = "all"\nsoft_usd = 1', UNKNOWN, 1),
        ('scope = "all"\nhard_usd = 1', UNKNOWN + "input_price = 0\n", 0),
        ('scope = "all"\nhard_usd = 1', UNKNOWN.replace("openai", "ollama"), 0),
    ],
)
def test_a_budget_that_holds_or_warns_is_taken(
    budget: str, model: str, count: int, tmp_path: Path
) -> None:
    assert len(company(tmp_path, budget, model).warnings) == count


async def test_budgets_reach_the_domain(tmp_path: Path) -> None:
    more = (
        '[ledger]\ntime_zone = "Europe/Berlin"\n[[budgets]]\nscope = "agent"\n'
        'period = "month"\nwho = "an*"\nhard_tokens = 9\nsoft_usd = 1\n'
        'on_soft = "downgrade"\ndowngrade_to = "cheap"'
    )
    config = load(tmp_path, more)
    catalogue = make_catalogue(
        config, SystemClock(), ProgramPlace(FakeSandbox(), tmp_path)
    )
    assert str(catalogue.zone) == "Europe/Berlin"
    assert catalogue.budgets == (
        Budget(
            scope="agent",
            period="month",
            who="an*",
            soft=Limit(usd=1.0),
            hard=Limit(tokens=9),
            downgrade_to="cheap",
        ),
    )


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        (
            "openai",
            "top_p = 0.5\nseed = 3\nreasoning_effort = 'low'",
            {"top_p": 0.5, "seed": 3, "reasoning_effort": "low"},
        ),
        (
            "openai_responses",
            "reasoning_effort = 'low'\nextra_body = { reasoning = { x = 1 } }",
            {"reasoning": {"effort": "low", "x": 1}},
        ),
        ("anthropic", "top_p = 0.5", {"top_p": 0.5}),
        (
            "google",
            "seed = 3\nextra_body = { generationConfig = { topK = 4 } }",
            {"generationConfig": {"seed": 3, "topK": 4}},
        ),
        (
            "ollama",
            "seed = 3\nextra_body = { think = false, stop = ['x'] }",
            {"options": {"seed": 3}, "think": False, "stop": ["x"]},
        ),
        ("openai", "", None),
        ("openai_responses", "", None),
    ],
)
def test_parameters_are_written_as_each_provider_calls_them(
    kind: str, settings: str, expected: object, tmp_path: Path
) -> None:
    table = f"[models.more]\nkind = '{kind}'\nmodel = 'm'\n{settings}\n"
    ground = ProgramPlace(FakeSandbox(), tmp_path)
    catalogue = make_catalogue(load(tmp_path, table), SystemClock(), ground)
    extra = catalogue.offers["more"].extra_body
    assert (msgspec.json.decode(extra) if extra else None) == expected


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("extra_body = { messages = [] }", "messages is written by Callboard"),
        ("extra_body = { input = [] }", "input is written by Callboard"),
        ("extra_body = { instructions = '' }", "instructions is written by Callboard"),
        ("extra_body = { when = 2026-01-01 }", "extra_body.when cannot be a date"),
        ("headers = { 'a b' = 'c' }", "the name 'a b' in [models.more.headers]"),
        ("top_p = 2", "top_p must be a number"),
    ],
)
def test_a_wrong_parameter_is_told(settings: str, words: str, tmp_path: Path) -> None:
    table = f"[models.more]\nkind = 'openai'\nmodel = 'm'\n{settings}\n"
    assert words in refusal(tmp_path, table)


@pytest.mark.parametrize(("flag", "many"), [("", 1), ("--mcp-config", 0)])
def test_servers_that_a_program_is_not_told_of_are_warned_of(
    flag: str, many: int, tmp_path: Path
) -> None:
    path = tmp_path / "callboard.toml"
    path.write_text(
        "default_agent = 'anna'\n"
        f"[models.program]\nkind = 'cli'\nservers_flag = '{flag}'\n"
        "[mcpServers.files]\ncommand = 'files'\n"
        "[connectors.terminal]\nkind = 'terminal'\n"
        "[agents.anna]\nmodel = 'program'\nprompt = 'x'\ntools = ['mcp:files']\n"
    )
    warnings = [str(each) for each in load_app(path, {}).warnings]
    assert len(warnings) == many, warnings
    assert all("mcp:files comes to nothing" in each for each in warnings)
