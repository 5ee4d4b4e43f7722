"""The file gradebook.db: where it is, how it is opened, and how damage to it shows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import nbgrader
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from nbgrader import api
from sqlalchemy import URL, Connection, create_engine, event
from sqlalchemy.exc import DatabaseError
from sqlalchemy.orm import Session

from autograder.base.damage import Damaged, is_there

__all__ = [
    "create_tables",
    "damage_told",
    "database_url",
    "gradebook_path",
    "has_tables",
    "open_session",
    "require_gradebook",
]

_WAIT_SECONDS = 60  # for another writer, such as a person in formgrader
_EXPECTED = "nbgrader's gradebook, an SQLite database"
# What SQLite calls what is wrong with the file itself; a lock or a full disk is none of these.
_DAMAGE = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_ERROR,  # a table or a column is not there
    sqlite3.SQLITE_NOTADB,
}


def gradebook_path(out: Path) -> Path:
    """Return where the gradebook of a results folder lies."""
    return out / "gradebook.db"


def database_url(out: Path) -> URL:
    """Return the URL of the gradebook, whatever characters the folder's name has."""
    path = str(gradebook_path(out.resolve()))
    return URL.create("sqlite", database=path, query={"timeout": str(_WAIT_SECONDS)})


def create_tables(out: Path) -> None:
    """Make the tables. nbgrader would run the command `alembic`, which may not be on the PATH."""
    script = ScriptDirectory(str(Path(nbgrader.__file__).parent / "alembic"))
    engine = create_engine(database_url(out))
    try:
        with damage_told(out), engine.begin() as connection:
            api.Base.metadata.create_all(connection)
            context = MigrationContext.configure(connection)
            if context.get_current_revision() is None:
                context.stamp(script, "head")
    finally:
        engine.dispose()


@contextmanager
def open_session(out: Path) -> Iterator[Session]:
    """One transaction that nobody else writes into: the lock is taken at its start."""
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
def damage_told(out: Path) -> Iterator[None]:
    """Raise Damaged for an error of SQLite's that says that the gradebook's file is damaged."""
    try:
        yield
    except DatabaseError as error:
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGE:
            raise Damaged(gradebook_path(out), f"is damaged ({error.orig})", _EXPECTED) from error
        raise


def has_tables(out: Path) -> bool:
    """Tell whether the gradebook has any table: none has one that a first run left unfinished."""
    path = gradebook_path(out)
    if not path.is_file():
        return False
    with closing(_connect(path)) as book:
        return bool(_tables(book))


def require_gradebook(out: Path) -> None:
    """Raise Damaged if the gradebook's file is there, but is no whole gradebook.

    A file without any table passes, as a first run leaves it that was cut off.
    """
    path = gradebook_path(out)
    if not is_there(path):
        return
    try:
        with path.open("rb"), closing(_connect(path)) as book:
            why = _what_is_wrong(book)
    except OSError as error:
        raise Damaged(path, f"cannot be read ({error.strerror})", _EXPECTED) from error
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _DAMAGE:
            raise OSError(f"{path} cannot be read or written: {error}") from error
        why = f"is damaged ({error})"
    if why:
        raise Damaged(path, why, _EXPECTED)


def _what_is_wrong(book: sqlite3.Connection) -> str:
    found = [row[0] for row in book.execute("PRAGMA integrity_check(1)")]
    if found != ["ok"]:
        return f"is damaged ({' '.join(found[0].split())})"
    tables = _tables(book)
    for name, table in api.Base.metadata.tables.items() if tables else ():
        columns = {row[0] for row in book.execute("SELECT name FROM pragma_table_info(?)", (name,))}
        missing = sorted({column.name for column in table.columns} - columns)
        if missing:
            return f"is of another version (its table {name} lacks {missing[0]})"
    return ""


def _tables(book: sqlite3.Connection) -> list[str]:
    return [row[0] for row in book.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_WAIT_SECONDS)
