"""The command line for shell blocks of the documentation: each call is a fork of one process that has all imported.

`python warm_commands.py SOCKET` serves. `evenedit` in a block's PATH is CLIENT, a small program that hands its
arguments, folder, environment and standard streams to it. Commands that serve pages are left running once they answer.
"""

import importlib
import json
import os
import pkgutil
import signal
import socket
import sys
from pathlib import Path

PACKAGES = (
    *("simulation", "instruments", "ratings", "stats", "survey", "run", "report", "gate", "study", "cases"),
    *("reporting", "operations", "comparison", "interchange", "bundle", "api", "web"),
)
"""What is imported before the first command; `ray` is slow and used by no page."""

CLIENT = """#!{python} -IS
import json, os, re, socket, sys, time
arguments = sys.argv[1:]
serves = arguments[:1] == ["serve"]
streams = [0, 1, 2]
if serves:
    if "--port" in arguments:
        arguments[arguments.index("--port") + 1] = "0"
    else:
        arguments += ["--port", "0"]
    log = f"{{os.environ['EVENEDIT_SERVERS']}}.{{os.getpid()}}"
    streams[1:] = [os.open(log, os.O_WRONLY | os.O_CREAT)] * 2
with socket.socket(socket.AF_UNIX) as wire:
    wire.connect("{socket}")
    told = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(wire, [len(told).to_bytes(8, "big")], streams)
    wire.sendall(told)
    said = wire.makefile()
    pid = said.readline().strip()
    if not serves:
        sys.exit(int(said.readline()))
    with open(os.environ["EVENEDIT_SERVERS"], "a") as running:
        running.write(pid + "\\n")
    wire.settimeout(0.1)
    for _ in range(600):
        with open(log) as file:
            told = file.read()
        port = re.search("http://127\\\\.0\\\\.0\\\\.1:([1-9][0-9]*)", told)
        try:
            if port:
                with socket.create_connection(("127.0.0.1", int(port[1])), timeout=30) as page:
                    page.sendall(b"GET / HTTP/1.0\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
                    if page.recv(5) == b"HTTP/":
                        print(told)
                        sys.exit(0)
        except OSError:
            pass
        try:
            code = int(said.readline() or 1)
            print(told)
            sys.exit(code)
        except TimeoutError:
            said = wire.makefile()
    sys.exit("the server did not answer")
"""


def main(path: str) -> None:
    """Serve until killed."""
    for package in map(importlib.import_module, (f"evenedit.{name}" for name in PACKAGES)):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".ray"):
                importlib.import_module(module.name)
    signal.signal(signal.SIGCHLD, lambda *_: reap())
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen()
        Path(f"{path}.ready").touch()
        while True:
            wire, _ = door.accept()
            if os.fork() == 0:
                door.close()
                run(wire)
            wire.close()


def reap() -> None:
    """Take note of every command that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def run(wire: socket.socket) -> None:
    """Be one command, from its arguments to its exit code."""
    from evenedit.cli import main as evenedit

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, streams, *_ = socket.recv_fds(wire, 8, 3)
    with wire.makefile("rb") as told:
        arguments, folder, environment = json.loads(told.read(int.from_bytes(size, "big")))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["evenedit", *arguments]
    wire.sendall(f"{os.getpid()}\n".encode())
    code: object = 1
    try:
        evenedit()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    wire.sendall(f"{code if isinstance(code, int) else 1}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
