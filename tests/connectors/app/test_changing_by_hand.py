"""Proves that a setting is changed by hand as it was shown, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from connectors.admin.settings import setting_rows
from connectors.app.reload.by_hand import SettingsByHand
from connectors.settings.load import load_app
from runtime.config.messages import dotted
from runtime.errors import MisuseError

MORE = """\
# The agents.
[agents.anna] # the first
model = "main"
prompt = "You are Anna." # for now

[agents.ben]
prompt = "You add."
"""
TEXT = """\
include = ["more.toml"]
default_agent = "anna" # answers

[agent_defaults]
model = "main"

[models.main] # one of two
kind = "scripted"
script = "script.toml"
[models.other]
kind = "scripted"
script = "script.toml"

[[budgets]]
scope = "all"
period = "day"
hard_usd = 5.0 # a day

[connectors.terminal]
kind = "terminal"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path)


def write(folder: Path) -> Path:
    (folder / "script.toml").write_text('[default]\nreply = "yes"\n')
    (folder / "more.toml").write_text(MORE)
    path = folder / "callboard.toml"
    path.write_text(TEXT)
    return path


def editor(file: Path) -> SettingsByHand:
    now = load_app(file, {}, needs_secrets=False)
    return SettingsByHand(now.files, lambda: now.value, lambda: now.origins)


def change(file: Path, name: str, text: str) -> tuple[str, ...]:
    """Change a setting as people do; gives what it came to."""
    proposed = editor(file).propose(name, text)
    assert not proposed.problem, proposed.problem
    return editor(file).write(name, text, proposed.mark).effects


def test_a_setting_is_changed_where_it_stands_and_comments_stay(file: Path) -> None:
    effects = change(file, "agents.anna.model", '"other"')
    assert effects == ('- agents.anna.model = "main"', '+ agents.anna.model = "other"')
    more = file.parent / "more.toml"
    assert more.read_text() == MORE.replace('model = "main"', 'model = "other"')
    assert file.read_text() == TEXT
    change(file, "budgets[0].hard_usd", "2")
    assert "hard_usd = 2 # a day" in file.read_text()
    assert load_app(file, {}).value.budgets[0].hard_usd == 2.0


def test_what_is_by_default_is_written_beside_its_own(file: Path) -> None:
    change(file, "agents.ben.model", "other")  # it inherits one
    assert 'model = "other"' in (file.parent / "more.toml").read_text()
    change(file, "limits.max_in_flight", "7")
    change(file, "agents.anna.heartbeat.every", "3600")
    new = load_app(file, {}).value
    assert new.agents["ben"].model == "other"
    assert new.agents["anna"].model == "main"
    assert new.limits.max_in_flight == 7
    assert new.agents["anna"].heartbeat.every == 3600.0
    change(file, "agents.ben.model", "")
    assert load_app(file, {}).value.agents["ben"].model == "main"
    assert (file.parent / "more.toml").read_text().startswith("# The agents.\n")


def test_all_that_inherits_a_change_is_named(file: Path) -> None:
    found = editor(file).propose("agent_defaults.max_history", "3")
    assert "+ agents.anna.max_history = 3" in found.effects
    assert "+ agents.ben.max_history = 3" in found.effects


WRONG = (
    ("agents.anna.model", "gpt", "there is no model 'gpt'"),
    ("agents.anna.temperature", "9", "temperature"),
    ("default_agent", '"zoe"', "zoe"),
    ("budgets[0].period", "day]", "period"),
)


def test_what_would_be_wrong_is_told_and_not_written(file: Path) -> None:
    known = editor(file)
    for name, text, why in WRONG:
        proposed = known.propose(name, text)
        assert why in proposed.problem
        with pytest.raises(MisuseError):
            known.write(name, text, proposed.mark)
    assert file.read_text() == TEXT
    assert (file.parent / "more.toml").read_text() == MORE


REFUSED = {
    "store.path": "it waits for a restart",
    "log.file": "it waits for a restart",
    "agents.anna.autonomy": "is changed in the file alone",
    "agents.anna.persona": "is changed in the file alone",
    "models.main.script": "is changed in the file alone",
    "models.main.kind": "is changed in the file alone",
    "connectors.terminal.kind": "is changed in the file alone",
    "owners": "is changed in the file alone",
    "notebook.bug_file": "is changed in the file alone",
    "hiring.who": "is changed in the file alone",
    "agents.anna.is_conductor": "is changed in the file alone",
    "agents.anna.heartbeat.sender": "is changed in the file alone",
    "agents.anna.heartbeat.chat": "is changed in the file alone",
    "agents.anna.autonomous.on_behalf_of": "is changed in the file alone",
    "agents.anna.autonomous.report_to": "is changed in the file alone",
    "nothing.at.all": "there is no setting",
}


def test_what_is_changed_in_the_file_alone_is_refused(file: Path) -> None:
    known = editor(file)
    for name, why in REFUSED.items():
        with pytest.raises(MisuseError, match=why):
            known.propose(name, '"x"')


def test_an_agent_may_be_called_as_a_setting_is(file: Path) -> None:
    more = file.parent / "more.toml"
    more.write_text(MORE.replace("agents.ben", "agents.sender"))
    assert change(file, "agents.sender.max_history", "3")


def test_a_route_for_everybody_is_not_added(file: Path) -> None:
    with pytest.raises(MisuseError, match="is changed in the file alone"):
        editor(file).propose("routes", '[{ agent = "ben" }]')


def test_a_table_does_not_bring_in_what_is_changed_in_the_file_alone(
    file: Path,
) -> None:
    known = editor(file)
    where = 'base_url = "http://elsewhere.example", api_key = { env = "KEY" }'
    for name, value in (
        ("media.transcriber", f'{{ model = "m", {where} }}'),
        ("media.speaker", f'{{ model = "m", voice = "v", {where} }}'),
        ("media.transcriber", '{ model = "m", api_key = { file = "/etc/passwd" } }'),
    ):
        with pytest.raises(MisuseError, match="is changed in the file alone"):
            known.propose(name, value)
    assert known.propose("media.max_bytes", "5").problem == ""


def test_nothing_is_written_over_what_somebody_else_has_changed(file: Path) -> None:
    proposed = editor(file).propose("default_agent", '"ben"')
    file.write_text(TEXT + "# mine\n")
    with pytest.raises(MisuseError, match="was changed meanwhile"):
        editor(file).write("default_agent", '"ben"', proposed.mark)
    assert file.read_text() == TEXT + "# mine\n"


def test_what_the_environment_gives_is_not_changed_in_a_file(file: Path) -> None:
    given_beside = {"CALLBOARD_LIMITS__MAX_IN_FLIGHT": "3"}
    now = load_app(file, given_beside)
    own = SettingsByHand(now.files, lambda: now.value, lambda: now.origins)
    with pytest.raises(MisuseError, match="CALLBOARD_LIMITS__MAX_IN_FLIGHT"):
        own.propose("limits.max_in_flight", "7")


VALUES = st.text(max_size=12) | st.sampled_from(
    ["0", "1", "true", "60.5", '"main"', "[]", "", "\n[x]\ny=1"]
)


@settings(max_examples=10)
@given(st.data())
def test_every_change_is_what_was_shown_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    file = write(tmp_path_factory.mktemp("change"))
    known = editor(file)
    config = load_app(file, {}).value
    rows = [x for x in setting_rows(config, {}) if not known.refusal(x.way)]
    row = data.draw(st.sampled_from(rows))
    value = data.draw(VALUES)
    name = dotted(row.way)
    try:
        proposed = known.propose(name, value)
    except MisuseError:
        return
    before = texts(file)
    if proposed.problem or not proposed.lines:
        with pytest.raises(MisuseError):
            known.write(name, value, proposed.mark)
        assert texts(file) == before
        return
    known.write(name, value, proposed.mark)
    assert len(texts(file) - before) == 1
    came = [x[2:].partition(" = ") for x in proposed.effects if x[0] == "+"]
    gone = {x[2:].partition(" = ")[0] for x in proposed.effects if x[0] == "-"}
    new = load_app(file, {}).value
    shown = {dotted(x.way): x.text for x in setting_rows(new, {})}
    assert came or gone
    assert all(shown[key] == text for key, _, text in came)
    assert all(shown.get(key) is None for key in gone - {x[0] for x in came})


def texts(file: Path) -> set[tuple[str, str]]:
    """Give the texts of all files, by name."""
    return {(each.name, each.read_text()) for each in file.parent.iterdir()}
