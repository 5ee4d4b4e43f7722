"""Opens the file gradebook.db, and recognises damage to it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, create_engine, event, insert, select
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from autograder.base.damage import Damaged, is_there
from autograder.store import tables
from autograder.store.out_folder import OutFolder

__all__ = ["create_tables", "database_url", "has_tables", "open_session", "require_gradebook"]

_WAIT_SECONDS = 60  # for another writer, such as Formgrader
_EXPECTED = "nbgrader's gradebook, an SQLite database"
# SQLite's codes for a damaged file, without those for a lock or a full disk.
_DAMAGE = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_ERROR,  # a table or a column is missing
    sqlite3.SQLITE_NOTADB,
}


def database_url(out: OutFolder) -> URL:
    """Return the gradebook's URL, with any special characters of the path escaped."""
    path = str(out.resolve().gradebook)
    return URL.create("sqlite", database=path, query={"timeout": str(_WAIT_SECONDS)})


def create_tables(out: OutFolder) -> None:
    """Create missing tables as the installed nbgrader would, either all of them or none."""
    version = tables.AlembicVersion
    with open_session(out) as session:
        tables.Base.metadata.create_all(session.connection())
        tables.Version.metadata.create_all(session.connection())
        if session.scalar(select(version.version_num)) is None:
            session.execute(insert(version), [{"version_num": tables.VERSION}])


@contextmanager
def open_session(out: OutFolder) -> Iterator[Session]:
    """Open one transaction that excludes other writers, because it takes the lock at its start."""
    engine = create_engine(database_url(out))

    @event.listens_for(engine, "connect")
    def _leave_begin_to_us(connection: Any, _record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    try:
        with damage_told(out), Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@contextmanager
def damage_told(out: OutFolder) -> Iterator[None]:
    """Raise Damaged if SQLite reports that the gradebook's file is damaged."""
    try:
        yield
    except DatabaseError as error:
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGE:
            raise Damaged(out.gradebook, f"is damaged ({error.orig})", _EXPECTED) from error
        raise


def has_tables(out: OutFolder) -> bool:
    """Tell whether the gradebook has any tables; an interrupted first run leaves none."""
    path = out.gradebook
    if not path.is_file():
        return False
    with closing(_connect(path)) as book:
        return bool(_tables(book))


def require_gradebook(out: OutFolder) -> None:
    """Raise Damaged if the gradebook's file exists but isn't a complete gradebook.

    A file without tables passes, because an interrupted first run leaves such a file.
    """
    path = out.gradebook
    if not is_there(path):
        return
    try:
        with path.open("rb"), closing(_connect(path)) as book:
            why = _what_is_wrong(book)
    except OSError as error:
        raise Damaged(path, f"can't be read ({error.strerror})", _EXPECTED) from error
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _DAMAGE:
            raise OSError(f"{path} can't be read or written: {error}") from error
        why = f"is damaged ({error})"
    if why:
        raise Damaged(path, why, _EXPECTED)


def _what_is_wrong(book: sqlite3.Connection) -> str:
    found = [row[0] for row in book.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        return f"is damaged ({' '.join(found[0].split())})"
    for name, table in tables.Base.metadata.tables.items() if _tables(book) else ():
        columns = {row[0] for row in book.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        missing = sorted({column.name for column in table.columns} - columns)
        if missing:
            return f"is of another version (its table {name} lacks {missing[0]})"
    return ""


def _tables(book: sqlite3.Connection) -> list[str]:
    return [row[0] for row in book.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_WAIT_SECONDS)
