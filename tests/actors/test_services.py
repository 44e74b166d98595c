"""Actors see the settings of now: all of them, and nothing that was put there alone."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace

import pytest

from actors.config.limits import LimitsConfig
from actors.services import Furnishing, Now, Services
from tests.fakes.actors.neighbours import make_services


def test_each_setting_is_looked_up_by_its_own_name() -> None:
    looked_up = {name for name, each in vars(Services).items() if isinstance(each, Now)}
    assert looked_up == {each.name for each in fields(Furnishing)}
    services = make_services()
    given = {name: object() for name in looked_up}
    furnished = object.__new__(Furnishing)  # its own `__init__` makes some of others
    for name, each in given.items():
        object.__setattr__(furnished, name, each)
    services.in_force.current = furnished
    for name, each in given.items():
        assert getattr(services, name) is each, name


def test_whoever_keeps_services_sees_what_comes_in_force() -> None:
    services = make_services()
    before = services.in_force.current
    assert services.limits is before.limits
    services.in_force.current = replace(before, limits=LimitsConfig(max_open=7))
    assert services.limits.max_open == 7
    assert before.limits.max_open != 7


def test_no_setting_is_changed_by_itself() -> None:
    services = make_services()
    with pytest.raises(FrozenInstanceError):
        services.limits = LimitsConfig()  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError):
        services.in_force.current.limits = LimitsConfig()  # type: ignore[misc]
