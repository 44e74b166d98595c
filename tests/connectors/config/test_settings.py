"""Proves that what does not go together in a settings file is told at its place."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

from actors.commands.registry import COMMANDS
from connectors.config.app import AppConfig
from connectors.config.checks import is_loopback
from connectors.config.shipped import shipped_settings
from connectors.files.notebook import bug_file_of
from connectors.settings.checks.tools import check_readable
from connectors.settings.load import load_app
from connectors.tools.registry import TOOLS
from connectors.web.eliza.platform import WebConfig
from runtime.config.loader import Settings
from runtime.errors import SettingsError

BASE = """\
default_agent = "anna"
[models.scripted]
kind = "scripted"
script = "rules.toml"
[connectors.terminal]
kind = "terminal"
[agents.anna]
prompt = "You are Anna."
[agents.ben]
prompt = "You are Ben."
"""
BASE_LINES = BASE.count("\n")


def loaded(folder: Path, text: str) -> Settings[AppConfig]:
    (folder / "rules.toml").write_text("", encoding="utf-8")
    path = folder / "callboard.toml"
    path.write_text(text, encoding="utf-8")
    return load_app(path, {"GOOD_KEY": "a-long-enough-key"})


def refused(folder: Path, text: str) -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        loaded(folder, text)
    assert len(caught.value.problems) == 1
    return caught.value


def test_a_persona_that_is_no_text_is_found_before_the_start(tmp_path: Path) -> None:
    (tmp_path / "cara").mkdir()
    (tmp_path / "cara" / "SOUL.md").write_bytes(b"\xff\xfe")
    error = refused(tmp_path, BASE + "[agents.cara]\npersona = 'cara'")
    assert (error.line, error.column) == (BASE_LINES + 2, 11)
    assert "SOUL.md:1: is not UTF-8 text" in error.text
    assert error.hint == "save it as UTF-8"


def test_the_base_of_these_tests_is_right(tmp_path: Path) -> None:
    settings = loaded(tmp_path, BASE)
    assert settings.warnings == ()
    assert list(settings.value.agents) == ["anna", "ben"]


def test_a_path_stands_as_people_wrote_it_but_never_goes_back_through_a_link(
    tmp_path: Path,
) -> None:
    real, text = tmp_path / "real", f"store.path = 'a.db'\n{BASE}"
    real.mkdir()
    (tmp_path / "link").symlink_to("real")
    for way, found in (("link", "link"), ("link/../link", "real")):
        app = loaded(tmp_path / way, text).value
        assert app.store.path == str(tmp_path / found / "a.db")


SETTABLE = sorted(word for word, each in COMMANDS.items() if not each.is_fixed)


@pytest.mark.parametrize(
    ("more", "place", "text", "hint"),
    [
        (
            "[workspace]\npath = 'var'",
            (2, 8),
            "workspace.path: {0}/var holds the database ({0}/var/callboard.db)",
            "give the workspaces a folder of their own, for example var/workspace",
        ),
        (
            "[fetch]\nallow = ['10.0.0.0/8', '0.0.0.0/0']",
            (2, 24),
            "fetch.allow[1]: '0.0.0.0/0' opens too much: name a smaller network",
            'for example "10.1.0.0/16", "10.1.2.3" or "search.lan:8080"',
        ),
        (
            "[agents.cara]\nprompt = 'x'\ntools = ['web_search']",
            (3, 10),
            "agents.cara.tools[0]: there is no search engine for the tool 'web_search'",
            'set kind under [web_search], as in "searxng"',
        ),
        (
            "[web_search]\nkind = 'brave'",
            (1, 2),
            "web_search: Brave asks for a key",
            'add api_key = { env = "BRAVE_API_KEY" }',
        ),
        (
            "[web_search]\nkind = 'searxng'\nbase_url = 'search.lan'",
            (3, 12),
            "web_search.base_url: is no http or https address",
            'for example: base_url = "http://127.0.0.1:8888"',
        ),
        (
            "[people]\nlanguage = 'it'",
            (2, 12),
            "people.language: there is no translation into 'it'",
            "known: de, en, es, fr, ko, pt",
        ),
        (
            "[commands]\nmodels = ['*', 'scriptd']",
            (2, 16),
            "commands.models[1]: no model fits 'scriptd'",
            "did you mean 'scripted'? known: scripted",
        ),
        (
            "[embedders.off]\nkind = 'openai'",
            (1, 12),
            "embedders.off: 'off' already means something as memory.embedder",
            "give it another name",
        ),
        (
            "[embedders.own]\nkind = 'ollama'\nbase_url = 'here'",
            (3, 12),
            "embedders.own.base_url: is no http or https address",
            'for example: base_url = "http://127.0.0.1:11434"',
        ),
        (
            "[memory]\nfolder = ''",
            (2, 10),
            "memory.folder: names no folder",
            'name a folder, for example "var/memory"',
        ),
        (
            "[memory]\nfolder = '/dev/null'",
            (2, 10),
            "memory.folder: /dev/null is no folder",
            'name a folder, for example "var/memory"',
        ),
        (
            "[[routes]]\nagent = 'ana'",
            (2, 9),
            "routes[0].agent: there is no agent 'ana'",
            "did you mean 'anna'? known: anna, ben",
        ),
        (
            "[[routes]]\nagent = 'anna'\nconnector = 'teminal'",
            (3, 13),
            "routes[0].connector: there is no connector 'teminal'",
            "did you mean 'terminal'? known: terminal",
        ),
        (
            "[[routes]]\nagent = 'anna'\nconnector = 'web*'",
            (3, 13),
            "routes[0].connector: no connector fits 'web*'",
            "known: terminal",
        ),
        (
            "[agents.cara]\nprompt = 'x'\nmodel = 'scriptd'",
            (3, 9),
            "agents.cara.model: there is no model 'scriptd'",
            "did you mean 'scripted'? known: scripted",
        ),
        (
            "[agents.cara]\nprompt = 'x'\ntools = ['clock', 'calcuate']",
            (3, 19),
            "agents.cara.tools[1]: there is no tool 'calcuate'",
            f"did you mean 'calculate'? known: {', '.join(TOOLS)}",
        ),
        (
            "[agents.cara]\nprompt = 'x'\ndelegates = ['bem']",
            (3, 14),
            "agents.cara.delegates[0]: there is no agent 'bem'",
            "did you mean 'ben'? known: anna, ben",
        ),
        (
            "[agents.cara]\nprompt = 'x'\ndelegates = ['cara']",
            (3, 14),
            "agents.cara.delegates[0]: agent 'cara' cannot hand work to itself",
            "take it out of the list",
        ),
        (
            "[commands.who]\nnev = 'owners'",
            (2, 7),
            "commands.who.nev: there is no command 'nev'",
            f"did you mean 'new'? known: {', '.join(SETTABLE)}",
        ),
        (
            "[commands.who_in_groups]\nhelp = 'nobody'",
            (2, 8),
            "commands.who_in_groups.help: the settings cannot change who may use /help",
            "take it out",
        ),
        (
            "[approvals]\ntimeout = 300",
            (2, 11),
            "approvals.timeout: a turn is over after 300 s, before the answer",
            "make it shorter than limits.turn_timeout",
        ),
        (
            "[approvals]\napproval_chat = 'teminal/x'",
            (2, 17),
            "approvals.approval_chat: there is no connector 'teminal'",
            "did you mean 'terminal'? known: terminal",
        ),
        (
            "[presence.connectors.teminal]\nreactions = false",
            (1, 22),
            "presence.connectors.teminal: there is no connector 'teminal'",
            "did you mean 'terminal'? known: terminal",
        ),
        (
            "[approvals]\napproval_chat = 'terminal'",
            (2, 17),
            "approvals.approval_chat: names no chat",
            "write connector/chat",
        ),
        (
            "[approvals]\napproval_chat = 'terminal:x'",
            (2, 17),
            "approvals.approval_chat: names no chat",
            'write "terminal/x"',
        ),
        (
            "[[permissions]]\nagent = 'an'\ndeny = ['*']",
            (2, 9),
            "permissions[0].agent: no agent fits 'an'",
            "did you mean 'anna'? known: anna, ben",
        ),
        (
            "[connectors.second]\nkind = 'terminal'",
            (1, 13),
            "connectors.second: the terminals have a table already, 'terminal'",
            "take one of the two out",
        ),
        (
            (
                "[connectors.a]\nkind = 'http'\nport = 7777\n"
                "[connectors.b]\nkind = 'page'\nport = 7777"
            ),
            (6, 8),
            "connectors.b.port: connectors.a listens on port 7777, too",
            "give one of the two another port",
        ),
        (
            "[connectors.web]\nkind = 'http'\nhost = '0.0.0.0'",
            (3, 8),
            (
                "connectors.web.host: without api_key, everybody who reaches "
                "'0.0.0.0' may use the agents"
            ),
            'add api_key = { env = "CALLBOARD_API_KEY" }, or host = "127.0.0.1"',
        ),
        (
            "[models.o]\nkind = 'openai'\nmodel = 'm'\nbase_url = 'localhost:80'",
            (4, 12),
            "models.o.base_url: is no http or https address",
            'for example: base_url = "https://api.openai.com/v1"',
        ),
        (
            "[models.o]\nkind = 'openai'\nmodel = 'm'\nbase_url = 'http://[::1'",
            (4, 12),
            "models.o.base_url: is no http or https address",
            'for example: base_url = "https://api.openai.com/v1"',
        ),
        (
            "[models.o]\nkind = 'openai'\nmodel = 'm'\nbase_url = 'http://a:b@c/v1'",
            (4, 12),
            "models.o.base_url: holds a name or password, in the open",
            'use api_key = { env = "NAME" }',
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    more: str, place: tuple[int, int], text: str, hint: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, BASE + more)
    assert (error.line - BASE_LINES, error.column) == place
    assert error.text == text.replace("{0}", str(tmp_path))
    assert error.hint == hint


def test_an_owner_with_a_colon_is_shown_with_the_slash(tmp_path: Path) -> None:
    error = refused(tmp_path, "owners = ['terminal:you']\n" + BASE)
    assert "'terminal:you' is nobody" in error.text
    assert error.hint == 'write "terminal/you"'


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"anna"', '"ana"', ":1:17: default_agent: there is no agent 'ana'"),
        ("rules.toml", "no.toml", ":4:10: models.scripted.script: there is no file"),
        (
            "[agents.ben]",
            "[store]\npath = ''\n[agents.ben]",
            "store.path must be a text that is not empty",
        ),
        ('prompt = "You are Ben."', "persona = 'x'", ":10:11: agents.ben.persona: "),
        ("[agents.ben]", "[agents.Ben]", ":9:9: the name 'Ben' in [agents] is not"),
        ("[agents.ben]", '[agents."b c"]', ":9:9: the name 'b c' in [agents] is not"),
    ],
)
def test_a_wrong_reference_is_refused(
    old: str, new: str, expected: str, tmp_path: Path
) -> None:
    assert expected in str(refused(tmp_path, BASE.replace(old, new)))


def test_a_file_with_nothing_in_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, "")
    assert [each.text for each in caught.value.problems] == [
        "there is no agent",
        "there is no connector",
    ]


def test_an_inherited_wrong_name_is_told_once(tmp_path: Path) -> None:
    error = refused(tmp_path, f"{BASE}[agent_defaults]\nmodel = 'scirpted'\n")
    assert error.line == BASE_LINES + 2


@pytest.mark.parametrize(
    ("more", "hint"),
    [
        ("temperature = 1", "it belongs in [agent_defaults] or [agents.NAME]; known"),
        ("temprature = 1", "known: kind"),
        (
            "[agents.cara]\nfallbacks = ['scripted']",
            "it belongs in [models.NAME]; near",
        ),
        ("[routing]\ncheap = 'scripted'", "it belongs in [agent_defaults] or"),
        ("[agents.cara]\nmodell = 'scripted'", "did you mean 'model'?"),
    ],
)
def test_a_key_in_the_wrong_table_is_told_where_it_belongs(
    tmp_path: Path, more: str, hint: str
) -> None:
    before, models, rest = BASE.partition('script = "rules.toml"\n')
    is_of_model = not more.startswith("[")
    text = f"{before}{models}{more}\n{rest}" if is_of_model else f"{BASE}{more}\n"
    error = refused(tmp_path, text)
    assert hint in error.hint
    assert ("belongs" in error.hint) == ("belongs" in hint)


def test_an_agent_s_own_setting_wins_over_the_defaults(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path, f"{BASE}max_history = 20\n[agent_defaults]\nmax_history = 7\n"
    )
    agents = settings.value.agents
    assert (agents["anna"].max_history, agents["ben"].max_history) == (7, 20)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('prompt = "You are Ben."', "", "agents.ben: this agent is told nothing"),
        ('default_agent = "anna"', "", "connectors.terminal: nobody answers here"),
        (
            "[agents.anna]",
            (
                "[models.o]\nkind = 'openai'\nmodel = 'm'\nbase_url = 'http://far.ex'\n"
                "api_key = { env = 'GOOD_KEY' }\n[agents.anna]"
            ),
            "models.o.base_url: the key travels to far.ex unencrypted",
        ),
        (
            "[agents.anna]",
            "[agents.anna]\ntool_permissions = { run_shel = 'deny' }",
            "agents.anna.tool_permissions: no tool fits 'run_shel'",
        ),
        (
            "[agents.anna]",
            "[[permissions]]\ndeny = ['web_*', 'files__*', 'xyz*']\n[agents.anna]",
            "permissions[0].deny: no tool fits 'xyz*'",
        ),
        (
            "[agents.anna]",
            (
                "[connectors.http]\nkind = 'http'\n[approvals]\n"
                "approval_chat = 'http/boss'\n[agents.anna]"
            ),
            "approvals.approval_chat: nobody can be asked over HTTP",
        ),
    ],
)
def test_what_works_but_is_odd_is_a_warning(
    old: str, new: str, expected: str, tmp_path: Path
) -> None:
    warnings = loaded(tmp_path, BASE.replace(old, new)).warnings
    assert len(warnings) == 1
    assert warnings[0].text.startswith(expected)


def test_with_a_key_the_server_may_be_reached_by_others(tmp_path: Path) -> None:
    door = "[connectors.web]\nkind = 'http'\nhost = '0.0.0.0'\n"
    settings = loaded(tmp_path, f"{BASE}{door}api_key = {{ env = 'GOOD_KEY' }}\n")
    assert [secret.reveal() for secret in settings.secrets] == ["a-long-enough-key"]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("gone", "there is no file or folder"),
        ("/", "each program has its own"),
        (tempfile.gettempdir(), "each program has its own"),
        ("/proc", "Callboard with its secrets among them"),
        ("/dev/fd", "tells of other programs"),
    ],
)
def test_what_would_undo_the_sandbox_is_not_readable(path: str, says: str) -> None:
    (complaint,) = check_readable((Path("/usr"), Path(path)))
    assert complaint.way == ("sandbox", "readable", 1)
    assert says in complaint.text
    assert not complaint.is_warning


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"]
)
def test_this_machine_s_own_addresses_are_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "10.0.0.1", "localhost.example"])  # noqa: S104
def test_all_others_are_strangers_addresses(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[notebook]\nbug_file = 'var/callboard.db'", "is the database"),
        ("[notebook]\nbug_file = '/'", "/ is a folder"),
        ("[projects]\nfolder = 'gone'", "there is no folder"),
        # No system has such a name, so that nobody may look.
        (f"[projects]\nfolder = '{'x' * 300}'", "there is no folder"),
    ],
)
def test_files_of_the_notebook_must_be_able_to_be_it(
    tmp_path: Path, text: str, says: str
) -> None:
    assert says in refused(tmp_path, BASE + text).text


def test_projects_without_a_memory_are_warned_of(tmp_path: Path) -> None:
    text = "[projects]\nfolder = '.'\n[memory]\nenabled = false"
    (warning,) = loaded(tmp_path, BASE + text).warnings
    assert "nobody can remember" in warning.text


def test_bugs_are_reported_beside_the_database(tmp_path: Path) -> None:
    app = loaded(tmp_path, BASE + "[store]\npath = 'here/my.db'").value
    assert bug_file_of(app) == tmp_path / "here/bugs.md"


WRITTEN = """
[workspace]
path = "work"
[files]
path = "sent"
[notebook]
bug_file = "~/bugs.md"
[connectors.web]
kind = "web"
"""


def test_what_is_written_lies_by_the_settings_file_wherever_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    loaded(home, BASE + WRITTEN)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(elsewhere)
    app = load_app(Path("../home/callboard.toml"), {"STATE_DIRECTORY": "/x"}).value
    assert Path(app.store.path).is_absolute()
    assert Path(app.store.path).resolve() == home / "var/callboard.db"
    assert Path(app.workspace.path).resolve() == home / "work"
    assert Path(app.files.path).resolve() == home / "sent"
    assert Path(app.memory.folder).resolve() == home / "var/memory"
    assert Path(app.notebook.bug_file) == tmp_path / "bugs.md"
    web = app.connectors["web"]
    assert isinstance(web, WebConfig)
    assert Path(web.uploads).resolve() == home / "var/web_uploads"


def test_a_path_of_an_included_file_starts_there_and_a_default_does_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "shared").mkdir()
    shared = "[workspace]\npath = 'work'\n[store]\nsynchronous = 'normal'\n"
    (tmp_path / "shared/base.toml").write_text(shared, encoding="utf-8")
    app = loaded(tmp_path, f"include = ['shared/base.toml']\n{BASE}").value
    assert app.workspace.path == str(tmp_path / "shared/work")
    assert app.store.path == str(tmp_path / "var/callboard.db")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"STATE_DIRECTORY": "/one:/two", "XDG_STATE_HOME": "/x"}, "/one"),
        ({"XDG_STATE_HOME": "/x"}, "/x/callboard"),
        ({"XDG_STATE_HOME": "relative"}, "/home/sam/.local/state/callboard"),
        ({}, "/home/sam/.local/state/callboard"),
    ],
)
def test_without_settings_of_ones_own_state_has_its_own_folder(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/sam")
    app = load_app(shipped_settings() / "offline.toml", environment).value
    assert app.store.path == f"{expected}/var/offline.db"


def test_a_database_at_the_place_of_earlier_releases_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    for folder in (home / "var", elsewhere / "var"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    assert loaded(home, BASE).warnings == ()
    (elsewhere / "var/callboard.db").write_bytes(b"x")
    (warning,) = loaded(home, BASE).warnings
    before = elsewhere / "var/callboard.db"
    assert warning.text == (
        f"store.path: {home}/var/callboard.db is not there yet, but {before}"
        " is: relative paths once started at the current directory"
    )
    move = "stop Callboard and move it, with its -wal; or set path = "
    assert warning.hint == f'{move}"{before}"'
    absolute = f"[store]\npath = '{tmp_path}/var/callboard.db'\n"
    assert loaded(home, BASE + absolute).warnings == ()
    (home / "var/callboard.db").write_bytes(b"x")
    assert loaded(home, BASE).warnings == ()


def test_a_connector_on_the_operators_port_is_refused(tmp_path: Path) -> None:
    text = BASE + "[admin]\nport = 8123\n[connectors.a]\nkind = 'http'\nport = 8123"
    error = refused(tmp_path, text)
    assert "connectors.a.port: admin listens on port 8123, too" in error.text


def test_an_agent_without_a_model_is_told_which_there_is(tmp_path: Path) -> None:
    text = BASE.replace("[models.scripted]", "[models.main]")
    with pytest.raises(SettingsError) as raised:
        loaded(tmp_path, text)
    error = raised.value.problems[0]
    assert "it names no model, and none is called 'scripted'" in error.text
    assert error.hint == 'write model = "main", here or in [agent_defaults]'


def test_an_agent_in_capitals_is_told_where_they_belong(tmp_path: Path) -> None:
    error = refused(tmp_path, BASE + "[agents.Eliza]\nprompt = 'You are Eliza.'")
    assert "display_name" in f"{error.text} {error.hint}"
    text = BASE + "[agents.eliza]\nprompt = 'x'\ndisplay_name = 'Eliza O. Smith'"
    agent = loaded(tmp_path, text).value.agents["eliza"]
    assert agent.display_name == "Eliza O. Smith"


@pytest.mark.parametrize(
    "shown",
    [
        *("Anna", "BEN", "Everyone", "@eliza", " eliza", "a:b"),
        *("\u202eeliza", "e\u200bliza", "eli\u2066za", "eliza\ufe0f", "\u0301eliza"),
        *("eliza \u0301", "eliza" + "\u0301" * 5, "eliza\u20dd", "eliza\u034f"),
        *("eliza\u2603", "eliza\n"),
    ],
)
def test_a_display_name_is_a_name_and_nobody_elses(tmp_path: Path, shown: str) -> None:
    written = json.dumps(shown)
    text = f"[agents.eliza]\nprompt = 'x'\ndisplay_name = {written}"
    assert refused(tmp_path, BASE + text).line == BASE_LINES + 3


NAMES_WITH_MARKS = (
    *("สมศักดิ์", "יוֹסֵף", "हिन्दी", "தமிழ்", "Zoe\u0301", "ခင်မောင်"),
    *("Dr. Nguye\u0302\u0303n-Thi", "محمّد"),
)


@pytest.mark.parametrize("shown", NAMES_WITH_MARKS)
def test_a_display_name_has_the_marks_of_its_script(tmp_path: Path, shown: str) -> None:
    text = f"[agents.eliza]\nprompt = 'x'\ndisplay_name = '{shown}'"
    assert loaded(tmp_path, BASE + text).value.agents["eliza"].display_name == shown


def test_the_same_name_in_other_characters_is_the_same(tmp_path: Path) -> None:
    one = "[agents.one]\nprompt = 'x'\ndisplay_name = 'Zoe\u0301'\n"
    two = "[agents.two]\nprompt = 'x'\ndisplay_name = 'ZO\u00c9'"
    assert "is called so" in refused(tmp_path, BASE + one + two).text


@pytest.mark.parametrize("kind", ["web", "page", "http"])
def test_a_trusted_proxy_is_an_address_or_a_network(tmp_path: Path, kind: str) -> None:
    table = f"[connectors.more]\nkind = '{kind}'\ntrusted_proxies = "
    given = "['127.0.0.1', '::1', '10.0.0.0/8']"
    assert "more" in loaded(tmp_path, BASE + table + given).value.connectors
    for wrong in ("*", "proxy.example", "10.0.0.1/8"):
        error = refused(tmp_path, BASE + table + f"['{wrong}']")
        assert "neither an address nor a network" in error.text
