"""Proves how texts with NUL are stored on a server, and how errors are told."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given, strategies as st
from psycopg import errors

from runtime.errors import (
    CorruptError,
    KernelError,
    MisuseError,
    StoreRefusedError,
    StoreUnavailableError,
)
from runtime.postgresql.server import (
    PostgresqlServer,
    given as read_back,
    is_away,
    plain,
    stored,
)

TEXTS = st.text(alphabet="\x00\x01\x02a") | st.text()


@given(text=TEXTS, other=TEXTS)
def test_texts_come_back_in_the_same_order(text: str, other: str) -> None:
    assert "\x00" not in stored(text)
    assert read_back(stored(text)) == text
    assert (sent(stored(text)) < sent(stored(other))) == (sent(text) < sent(other))
    begins = sent(stored(other)).startswith(sent(stored(text)))
    assert begins == sent(other).startswith(sent(text))


def sent(text: str) -> bytes:
    """Give the bytes by which texts are compared."""
    return text.encode("utf-8", "surrogatepass")


def test_of_an_error_only_the_first_line_is_told() -> None:
    told = "syntax error\nLINE 1: INSERT INTO inbox VALUES ('my secret')"
    assert plain(psycopg.OperationalError(told)) == "syntax error"
    assert plain(errors.DiskFull("")) == "DiskFull"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (errors.DiskFull("x"), StoreUnavailableError, "no more room"),
        (errors.ReadOnlySqlTransaction("x"), StoreUnavailableError, "takes no writes"),
        (errors.SerializationFailure("x"), StoreUnavailableError, "Try again"),
        (errors.DeadlockDetected("x"), StoreUnavailableError, "Try again"),
        (errors.QueryCanceled("x"), StoreUnavailableError, "took too long"),
        (errors.LockNotAvailable("x"), StoreUnavailableError, "another program"),
        (errors.TooManyConnections("x"), StoreUnavailableError, "max_connections"),
        (errors.InvalidPassword("x"), StoreUnavailableError, "password"),
        (errors.AdminShutdown("x"), StoreUnavailableError, "does not answer"),
        (psycopg.OperationalError("x"), StoreUnavailableError, "does not answer"),
        (errors.DataCorrupted("x"), CorruptError, "damaged"),
        (errors.ProgramLimitExceeded("x"), MisuseError, "never be stored"),
        (errors.UndefinedTable("x"), StoreUnavailableError, "refused a statement"),
    ],
)
def test_each_error_names_its_cause_and_cure(
    error: psycopg.Error, kind: type[KernelError], words: str
) -> None:
    told = PostgresqlServer("host=db.example dbname=company").translate(error)
    assert type(told) is kind
    assert words in str(told)


def test_what_follows_from_an_error_in_a_pipeline_is_no_lost_connection() -> None:
    assert is_away(psycopg.OperationalError("server closed the connection"))
    assert not is_away(errors.PipelineAborted("x"))


@pytest.mark.parametrize("password", ["top@secret", "top/secret", "12/secret", "@"])
def test_a_password_that_is_not_escaped_is_no_hosts_name(password: str) -> None:
    with pytest.raises(StoreRefusedError, match="%40") as caught:
        PostgresqlServer(f"postgresql://sam:{password}@db.example/company")
    assert "secret" not in str(caught.value)
    assert "top" not in str(caught.value)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://sam:%40%2F@db.example:5432/company",
        "postgresql://sam:x@one.example:5432,two.example:5433/company",
        "host=db.example dbname=a@b password=x@y",
        "postgresql://sam@db.example/a%40b",
    ],
)
def test_addresses_as_they_should_be_are_taken(dsn: str) -> None:
    assert "example" in PostgresqlServer(dsn).name
