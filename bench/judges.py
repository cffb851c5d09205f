"""Calls to judges against the local server: throughput at a limit, after a storm of 429, and resuming after SIGKILL."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

from PIL import Image

from bench.clock import timed
from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.core.images import ImageFolder
from evenedit.providers.calls import Provider, to_png
from tests.support.provider.server import SUCCESS, FakeProvider, ProviderAnswer, Seen, rate_limit

CALLS = 32
"""At once to each judge while resuming."""
os.environ.setdefault("OPENAI_API_KEY", "none")
os.environ.setdefault("GEMINI_API_KEY", "none")


def study(wire: FakeProvider, prompts: list[str] | None, calls: int, size: int, editors: int = 1) -> dict:
    own = {"image_size": max(size, 32), "timeout": 60}
    names = ["simulated-even", "simulated-lightening", "simulated-replacing"][:editors]
    return {
        "study": {"title": "Benchmark"},
        "sources": {"kind": "drawn", "settings": {"size": size}},
        "prompts": {"include": prompts} if prompts else {},
        "experiments": {"diagnosis": {}},
        "editors": [{"id": name} for name in names],
        "judges": [
            {
                "id": "simulated-a",
                "kind": "openai",
                "settings": {"model": "simulated-a", "base_url": wire.openai, **own},
            },
            {
                "id": "simulated-b",
                "kind": "gemini",
                "settings": {"model": "simulated-b", "base_url": wire.gemini, **own},
            },
        ],
        "executor": {"calls": calls},
    }


def edited(folder: Path, told: dict) -> Study:
    """A study whose edits are made and nothing is rated."""
    loaded = Study.of(StudyFile.parse({**told, "judges": []}, folder))
    loaded.run()
    return Study(StudyFile.parse(told, folder), loaded.store)


def throughput(folder: Path, size: int, calls: int, prompts: int, faces: dict) -> None:
    """Ratings per second at 1 s latency, against as many calls at once as are allowed to each of two judges."""
    from google import genai  # noqa: F401 (loading an SDK takes seconds, once)

    times: list[float] = []

    def noted(seen: Seen) -> ProviderAnswer:
        times.append(time.perf_counter())
        return SUCCESS(seen)

    with FakeProvider(latency=1.0, remember=False, otherwise=noted) as wire:
        told = study(wire, [f"O-{n:02d}" for n in range(1, prompts + 1)], calls, size)
        told["sources"]["settings"]["only"] = faces
        loaded = edited(folder, told)
        loaded.run()
        seconds = times[-1] + 1 - times[0]
        rate = wire.served / seconds
        print(
            f"{wire.served} calls of 1 s, pictures of {size} px, {calls} at once to each of 2 judges: {seconds:.1f} s, "
            f"{rate:.1f}/s of {2 * calls}/s: ratio {rate / (2 * calls):.3f}",
            flush=True,
        )


def against_bare(folder: Path, calls: int) -> None:
    """Ratings through a run, against a bare AsyncOpenAI loop that sends the same bodies, as many at once."""
    import asyncio

    import openai

    bodies: list[bytes] = []

    def noted(seen: Seen) -> ProviderAnswer:
        bodies.append(seen.body)
        return SUCCESS(seen)

    with FakeProvider(latency=0.5, remember=False, otherwise=noted) as wire:
        told = study(wire, [f"O-{n:02d}" for n in range(1, 7)], calls, 256)
        told["judges"] = told["judges"][:1]
        loaded = edited(folder, told)
        ours, _ = timed(loaded.run)
        sent = list(bodies)

        async def bare() -> None:
            limit = asyncio.Semaphore(calls)
            async with openai.AsyncOpenAI(api_key="none", base_url=wire.openai, max_retries=0) as client:

                async def one(body: bytes) -> None:
                    async with limit:
                        await client.chat.completions.create(**json.loads(body))

                await asyncio.gather(*map(one, sent))

        theirs, _ = timed(lambda: asyncio.run(bare()))
    print(
        f"{len(sent)} calls of 0.5 s, {calls} at once: a run with everything stored {ours:.1f} s, bare AsyncOpenAI "
        f"{theirs:.1f} s: ratio {ours / theirs:.3f}"
    )


def memory(calls: int) -> None:
    """The memory of this process while one provider is asked again and again."""
    import openai
    import psutil

    me, seen = psutil.Process(), []
    with FakeProvider(remember=False) as wire:

        def connect(key: str) -> openai.OpenAI:
            return openai.OpenAI(api_key=key, base_url=wire.openai, max_retries=0)

        provider = Provider(connect, model="simulated-a", key_env="OPENAI_API_KEY", attempts=5)
        numbers = count(1)

        def work(_: int) -> None:
            while (number := next(numbers)) <= calls:
                said = {"model": "simulated-a", "messages": [{"role": "user", "content": f"question {number}"}]}
                provider.call(lambda client, said=said: client.chat.completions.create(**said))
                if number % (calls // 10) == 0:
                    seen.append(me.memory_info().rss / 1e6)

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
    print(
        f"memory over {calls:,} calls: {seen[0]:.0f} MB after a tenth, {seen[-1]:.0f} MB in the end (highest "
        f"{max(seen):.0f}): ratio {seen[-1] / seen[0]:.3f}"
    )


def narrower(calls: int, limit: int) -> None:
    """Calls per second where the provider takes fewer at once than are sent, and says so by 429 alone."""
    for name, kind in (("concurrent", {"concurrent": limit}), ("per second", {"per_second": float(limit)})):
        with FakeProvider(latency=1.0, remember=False, **kind) as wire:
            done = asked(wire, calls, 20.0)
            rate = sum(5 < at <= 19 for at in done) / 14
            print(
                f"provider takes {limit} {name}, {calls} threads: {rate:.1f}/s after 5 s "
                f"({wire.asked - wire.served} calls turned away of {wire.asked}): ratio {rate / limit:.3f}"
            )


def storm(calls: int) -> None:
    """Five seconds of nothing but 429 amid calls of 1 s, without and with a retry-after."""
    for told in (None, 1):
        began = time.monotonic()

        def stormy(seen: Seen, told: int | None = told, began: float = began) -> ProviderAnswer:
            return rate_limit(told)(seen) if 5 < time.monotonic() - began < 10 else SUCCESS(seen)

        with FakeProvider(latency=1.0, remember=False, otherwise=stormy) as wire:
            done = asked(wire, calls, 60.0)
            per_second = [sum(int(at) == second for at in done) for second in range(60)]
            back = next((s for s in range(10, 58) if sum(per_second[s : s + 3]) >= 0.95 * 3 * calls), None)
            after = f"{back - 10} s after its end" if back is not None else "not within 50 s"
            print(
                f"5 s of 429 {'without' if told is None else 'with'} retry-after, {calls} calls at once: before it "
                f"{sum(per_second[1:5]) / 4 / calls:.3f} of the limit; back at 0.95 of it {after}"
            )


def asked(wire: FakeProvider, threads: int, seconds: float) -> list[float]:
    """When each success came, of one provider asked without pause by so many threads."""
    import openai  # loading it takes a second

    def connect(key: str) -> openai.OpenAI:
        return openai.OpenAI(api_key=key, base_url=wire.openai, max_retries=0)

    provider = Provider(connect, model="simulated-a", key_env="OPENAI_API_KEY", attempts=30)
    began, done, numbers = time.monotonic(), [], count()

    def work(_: int) -> None:
        while time.monotonic() - began < seconds:
            said = {"model": "simulated-a", "messages": [{"role": "user", "content": f"question {next(numbers)}"}]}
            provider.call(lambda client, said=said: client.chat.completions.create(**said))
            done.append(time.monotonic() - began)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    return [at for at in done if at <= seconds]


def resume(folder: Path) -> None:
    """5,040 edits × 2 judges, killed again and again: how often a call was made whose reply was stored."""
    with FakeProvider(latency=0.02, remember=False) as wire:
        told = study(wire, None, CALLS, 32, editors=3)
        loaded = edited(folder, told)
        (folder / "study.toml").write_text(_toml(told))
        command = [sys.executable, "-m", "evenedit", "run", str(folder)]
        stored = [0]
        kills, began = 0, time.perf_counter()
        while True:
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            try:
                process.wait(timeout=20 if kills < 4 else None)
                break
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
                stored.append(len(loaded.store.run_of_replies()))
        whole = len(loaded.store.run_of_replies())
        seconds = time.perf_counter() - began
        different = len(list((folder / "cache").rglob("*.json")))  # the same picture twice is one question
        print(
            f"{whole:,} ratings with {kills} SIGKILLs (stored at each: {', '.join(f'{s:,}' for s in stored[1:])}) in "
            f"{seconds:.0f} s: {wire.asked:,} calls for {different:,} different questions, {wire.asked - different} "
            f"repeated (under way when killed, at most {2 * CALLS * kills}): ratio {wire.asked / different:.4f}"
        )


def pictures(folder: Path) -> None:
    """A stored picture as it is sent, against decoding and encoding it again."""
    images = ImageFolder(folder)
    names = [images.put(Image.effect_noise((1024, 1024), 30 + n).convert("RGB")) for n in range(4)]
    bare, _ = timed(lambda: [to_png(images.open(name)) for name in names])

    def decoded() -> None:
        for name in names:
            image = images.open(name)
            image.load()
            to_png(image)

    again, _ = timed(decoded)
    print(
        f"a stored 1024 px picture made ready to send: {1000 * bare / 4:.1f} ms, encoded anew "
        f"{1000 * again / 4:.0f} ms: ratio {bare / again:.3f}"
    )


def _toml(told: dict) -> str:
    def value(item: object) -> str:
        if isinstance(item, dict):
            return "{" + ", ".join(f"{k} = {value(v)}" for k, v in item.items()) + "}"
        if isinstance(item, list):
            return "[" + ", ".join(value(v) for v in item) + "]"
        return f'"{item}"' if isinstance(item, str) else repr(item)

    return "".join(f"{key} = {value(item)}\n" for key, item in told.items())


def run(folder: Path) -> None:
    pictures(folder / "pictures")
    throughput(folder / "small", 64, 14, 6, {})
    throughput(folder / "large", 1024, 4, 1, {"race": ["White", "Black"]})
    against_bare(folder / "bare", 32)
    narrower(24, 16)
    storm(16)
    memory(50_000)
    resume(folder / "resume")
