"""Real database servers from Debian's packages, in a folder of the test's own, on loopback only."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PASSWORD = "not-for-any-file-7f3a9c41"
_SECONDS = 60.0


def postgres_programs() -> Path | None:
    """The folder of PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


def mariadb_program() -> str | None:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return shutil.which("mariadbd", path=path)


def _account(name: str) -> dict[str, object]:
    """Servers refuse to run as root: then they run as the user that their package has made."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam(name)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _own(folder: Path, name: str) -> None:
    folder.mkdir(parents=True)
    if os.getuid() == 0:
        user = pwd.getpwnam(name)
        os.chown(folder, user.pw_uid, user.pw_gid)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _server(
    command: list[str],
    log: Path,
    port: int,
    account: dict[str, object],
    stop: signal.Signals = signal.SIGTERM,
) -> Iterator[None]:
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd="/", **account)  # type: ignore[call-overload]
    try:
        deadline = time.monotonic() + _SECONDS
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield
    finally:
        # PostgreSQL waits for its clients when it is asked by SIGTERM, and MariaDB knows no SIGINT.
        process.send_signal(stop)
        process.wait(60)


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL server; gives the URL of an empty database."""
    programs = postgres_programs()
    assert programs is not None
    account, data, port = _account("postgres"), folder / "postgres", _free_port()
    _own(data, "postgres")
    secret = data.with_name("postgres-password")
    secret.write_text(PASSWORD)
    secret.chmod(0o644)
    command = [programs / "initdb", "-D", data / "data", "-U", "mosaic", "-A", "scram-sha-256"]
    command += ["--no-sync", f"--pwfile={secret}"]
    subprocess.run(command, check=True, capture_output=True, cwd="/", **account)  # type: ignore[call-overload]
    serve = [str(programs / "postgres"), "-D", str(data / "data"), "-p", str(port), "-k", str(data)]
    serve += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    with _server(serve, folder / "postgres.log", port, account, signal.SIGINT):
        yield f"postgresql://mosaic:{PASSWORD}@127.0.0.1:{port}/postgres"


def _await_login(port: int) -> None:
    """It listens before it has read what makes the account."""
    import pymysql

    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            pymysql.connect(
                host="127.0.0.1", port=port, user="mosaic", password=PASSWORD, database="mosaic"
            ).close()
        except pymysql.err.OperationalError:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


@contextmanager
def mariadb(folder: Path) -> Iterator[str]:
    """A MariaDB server; gives the URL of an empty database."""
    program = mariadb_program()
    assert program is not None
    account, data, port = _account("mysql"), folder / "mariadb", _free_port()
    _own(data, "mysql")
    user = pwd.getpwuid(int(str(account.get("user", os.getuid())))).pw_name
    # A server that starts removes what others have in the folder for temporary tables.
    folders = [f"--datadir={data / 'data'}", f"--tmpdir={data}"]
    install = ["mariadb-install-db", "--no-defaults", *folders, f"--user={user}"]
    install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
    made = subprocess.run(install, capture_output=True, text=True, cwd="/", **account)  # type: ignore[call-overload]
    assert made.returncode == 0, made.stdout + made.stderr
    begin = data / "begin.sql"
    # A statement for each line: of several on one only the first is done.
    begin.write_text(
        "CREATE DATABASE mosaic;\n"
        f"CREATE USER mosaic@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL ON mosaic.* TO mosaic@'127.0.0.1';\n"
    )
    serve = [
        program,
        "--no-defaults",
        *folders,
        f"--socket={data / 's'}",
        f"--port={port}",
    ]
    serve += [
        "--bind-address=127.0.0.1",
        f"--init-file={begin}",
        f"--pid-file={data / 'pid'}",
        "--skip-name-resolve",
    ]
    with _server(serve, folder / "mariadb.log", port, account):
        _await_login(port)
        yield f"mariadb://mosaic:{PASSWORD}@127.0.0.1:{port}/mosaic"
