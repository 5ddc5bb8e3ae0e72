"""Promises of a journal in PostgreSQL: a server that is gone, full or kept busy is told plainly, and used again."""

from __future__ import annotations

import sys
import time

import psycopg
import pytest

from newfound.errors import JournalError
from newfound.journal import Journal, Position


@pytest.fixture
def journal(postgres_journal):
    with Journal.open(postgres_journal, wait=0.5) as journal:
        journal.begin("a model", {}, b"genesis")
        yield journal


def end_others(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND usename = 'tester'"
        )


def test_a_connection_lost_between_blocks_is_not_noticed(journal, postgres, still_good):
    end_others(postgres)
    still_good(journal)


def test_a_connection_lost_in_a_block_loses_the_block_and_says_so(journal, postgres, sighting, still_good):
    def block():
        with journal.writing() as writer:
            writer.append([sighting(0)])
            end_others(postgres)
            writer.append([sighting(1)])

    with pytest.raises(JournalError, match=r"connection.*lost.*Nothing of this block"):
        block()
    assert journal.position() == Position(0, 0)
    still_good(journal)


def test_a_connection_lost_in_the_commit_leaves_it_unknown_and_says_what_is_safe(
    journal, postgres_journal, fill, still_good
):
    with psycopg.connect(postgres_journal) as connection:  # a server process that dies while it commits
        connection.execute(
            "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON sightings DEFERRABLE INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION die()"
        )
    with pytest.raises(JournalError, match=r"unknown whether.*same images again is safe"):
        fill(journal, 1)
    with psycopg.connect(postgres_journal) as connection:
        connection.execute("DROP TRIGGER die ON sightings")
    still_good(journal)


def test_a_lock_that_is_kept_is_waited_for_and_then_told(journal, postgres_journal, sighting, fill, still_good):
    with Journal.open(postgres_journal, wait=10) as other, other.writing() as writer:
        writer.append([sighting(0)])
        began = time.monotonic()
        with pytest.raises(JournalError, match=r"locked for more than 0\.5 s"):
            fill(journal, 1)
        assert 0.4 < time.monotonic() - began < 5
        assert journal.position() == Position(0, 0), "readers do not wait"
    still_good(journal)


def test_a_writer_that_hangs_is_ended_by_the_server(postgres_journal, postgres, fill):
    """Sessions are told to end after some idleness in a transaction; here it is made shorter than the signs of life."""
    with Journal.open(postgres_journal, wait=20) as journal, Journal.open(postgres_journal) as hanging:
        with journal._reading() as connection:
            told = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar()
        assert told == "20s"
        journal.begin("a model", {}, b"genesis")

        def hang():
            with hanging.writing() as writer:
                writer._connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 200")
                fill(journal, 1)  # waits for the lock, and gets it
                writer.snapshot(b"too late")

        with pytest.raises(JournalError, match="Nothing of this block"):
            hang()
        assert journal.position() == Position(1, 0)
        assert journal.latest_snapshot().state == b"genesis"


def test_two_schemas_are_two_journals_with_locks_of_their_own(postgres, journal, still_good):
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP SCHEMA IF EXISTS apart CASCADE")
        connection.execute("CREATE SCHEMA apart")
    with Journal.open(f"{postgres}?options=-csearch_path%3Dapart", wait=0.5) as other:
        assert other.empty
        other.begin("another model", {}, b"genesis")
        with other.writing():
            still_good(journal)


def test_other_peoples_tables_are_left_alone(postgres_journal):
    with psycopg.connect(postgres_journal) as connection:
        connection.execute("CREATE TABLE events (day date)")
        connection.execute("CREATE TABLE unrelated (day date)")
    with pytest.raises(JournalError, match=r"other tables \(events\)"):
        Journal.open(postgres_journal)
    with psycopg.connect(postgres_journal) as connection:
        connection.execute("DROP TABLE events")
    with Journal.open(postgres_journal) as journal:
        assert journal.empty


def test_a_server_that_is_not_there_is_told_without_the_password():
    url = "postgresql://ann:s3cret@127.0.0.1:1/birds?password=s3cret"
    with pytest.raises(JournalError, match=r"ann:\*\*\*@127\.0\.0\.1:1/birds") as caught:
        Journal.open(url, wait=1)
    assert "s3cret" not in str(caught.value)
    assert "refused" in str(caught.value)


def test_a_full_disk_and_a_reading_server_are_told(journal, postgres_journal, sighting, fill, still_good):
    with psycopg.connect(postgres_journal) as connection:  # the server's own error, as the disk would cause it
        connection.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
        )
        connection.execute("CREATE TRIGGER f BEFORE INSERT ON sightings FOR EACH ROW EXECUTE FUNCTION full_disk()")
    with pytest.raises(JournalError, match="disk is full"):
        fill(journal, 1)
    with psycopg.connect(postgres_journal) as connection:
        connection.execute("DROP TRIGGER f ON sightings")

    def block():
        with journal.writing() as writer:
            writer._connection.exec_driver_sql("SET TRANSACTION READ ONLY")
            writer.append([sighting(0)])

    with pytest.raises(JournalError, match="only reads"):
        block()
    still_good(journal)


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(JournalError, match=r'pip install "newfound\[postgres\]"'):
        Journal.open("postgresql://ann@127.0.0.1/birds")
