"""People who answer a survey over HTTP on loopback, and remember what was acknowledged."""

from __future__ import annotations

import asyncio
import json
import random
import time
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.survey import seated, service_of, study_of
from evenedit.survey.visits import Arrival

Place = tuple[str, str, str]
"""Item, slot and question: where one answer stands."""


@dataclass
class Person:
    """A participant with a seat, and the answers the server said it has."""

    name: str
    token: str
    places: list[Place]
    sent: int = 0
    """The number of the last answer sent."""
    acknowledged: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """The last answer acknowledged at each place: its number and value."""
    count: int = 0
    """Acknowledgements in all."""
    refused: int = 0
    """Answers the server did not take."""
    cut_off: bool = False
    """Whether the server was gone before the person was done."""
    seconds: list[float] = field(default_factory=list)
    """How long each acknowledgement took."""

    def given(self, number: int) -> tuple[Place, int]:
        """Where the answer of this number stands, and its value."""
        return self.places[number % len(self.places)], number % 5 + 1

    def note(self, number: int) -> None:
        """Remember an acknowledgement."""
        self.count += 1
        place, value = self.given(number)
        self.acknowledged[place] = max(self.acknowledged.get(place, (0, 0)), (number, value))

    def request(self) -> bytes:
        """The bytes that bring the answer of the number last sent."""
        (item, slot, question), value = self.given(self.sent)
        told = {"item": item, "slot": slot, "question": question, "value": value, "sequence": self.sent}
        body = json.dumps(told | {"milliseconds": 1000}).encode()
        head = (
            f"POST /survey/answers HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nCookie: visit={self.token}"
        )
        return f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send the next answer and note whether it was taken."""
        self.sent += 1
        started = time.perf_counter()
        writer.write(self.request())
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
        if head.split(b" ", 2)[1] == b"200" and json.loads(body)["stored"] == self.sent:
            self.seconds.append(time.perf_counter() - started)
            self.note(self.sent)
        else:
            self.refused += 1

    async def take_part(self, port: int, until: float, pace: float, chance: random.Random) -> None:
        """Answer until the time is up or the server is gone; every `pace` seconds, or at once if 0."""
        self.cut_off = True
        with suppress(OSError, EOFError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with closing(writer):
                await asyncio.sleep(chance.uniform(0, pace))
                while time.perf_counter() < until:
                    await self.answer(reader, writer)
                    await asyncio.sleep(chance.expovariate(1 / pace) if pace else 0)
            self.cut_off = False


def seat(folder: Path, count: int) -> list[Person]:
    """So many people who have a seat in the survey of a study that was run."""
    study = study_of(folder)
    service = service_of(study)
    people = []
    for number in range(count):
        token = seated(service, f"p{number}")
        places = [(item.id, asked.slot, asked.question.id) for item in service.items(token) for asked in item.questions]
        people.append(Person(f"p{number}", token, places))
    service.close()
    study.store.close()
    return people


async def all_take_part(people: list[Person], port: int, seconds: float, pace: float, chance: random.Random) -> None:
    """All of them at the same time."""
    until = time.perf_counter() + seconds
    await asyncio.gather(*(person.take_part(port, until, pace, chance) for person in people))


def lost(folder: Path, people: list[Person]) -> int:
    """Acknowledged answers that are not on disk: neither the same nor a later one of the same person and place."""
    study = study_of(folder)
    service = service_of(study)
    missing = 0
    for person in people:
        token = service.arrive(Arrival("panel", person.name)).token
        stored = {item.id: item.answers for item in service.items(token)}
        for (item, slot, question), (number, value) in person.acknowledged.items():
            kept = service.save(token, item, slot, question, 1, 0)  # number 0 is older than any, and changes nothing
            is_there = kept > number or (kept == number and stored[item].get((slot, question)) == value)
            missing += not is_there
    service.close()
    study.store.close()
    return missing
