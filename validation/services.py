"""Judges behind services that fail, and budgets that must hold: `python -m validation services`.

EDITS, RUNS and BATCH_KILLS in the environment set other sizes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

from evenedit.api.study import Study
from evenedit.config.study_file import StudyFile
from evenedit.core.records import Status
from evenedit.judges import batch_jobs
from evenedit.judges.openai import OpenAIJudge
from evenedit.providers.budget import Budget
from evenedit.providers.prices import Prices
from tests.support.provider.server import (
    SUCCESS,
    FakeProvider,
    ProviderAnswer,
    Seen,
    as_json,
    drop,
    rate_limit,
    server_error,
    slow,
)
from validation.page import Validation, size, table

SEED = 19
PROMPTS = [f"O-{n:02d}" for n in range(1, 7)]
USAGE = {"gemini": ("promptTokenCount", "candidatesTokenCount"), "openai": ("prompt_tokens", "completion_tokens")}
"""What providers call the tokens in and out of a call."""
for _name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
    os.environ.setdefault(_name, "none")


def study(wire: FakeProvider, folder: Path, prompts: list[str], faces: dict[str, Any], **own: Any) -> Study:
    """A study whose edits are made and nothing is rated."""
    both = {"openai": wire.openai, "gemini": wire.gemini}
    told = {
        "study": {"title": "Services"},
        "sources": {"kind": "drawn", "settings": {"size": 32, "only": faces}},
        "prompts": {"include": prompts},
        "experiments": {"diagnosis": {}},
        "editors": [{"id": "simulated-even"}],
        "judges": [
            {
                "id": f"simulated-{kind}",
                "kind": kind,
                "settings": {"model": f"simulated-{kind}", "base_url": base, "image_size": 32, "batch": True, **own},
            }
            for kind, base in both.items()
        ],
        "cache": {"use": False},
        "executor": {"retries": 0},
    }
    made = Study.of(StudyFile.parse({**told, "judges": []}, folder))
    made.run()
    made.store.close()
    return Study.of(StudyFile.parse(told, folder))


def statuses(loaded: Study) -> Counter[Status]:
    """How the replies of all judges ended."""
    found = (loaded.store.answered(j.id, j.revision).values() for j in loaded.design.judges())
    return Counter(status for each in found for status in each)


def storms(folder: Path, seed: int = SEED) -> dict[str, Any]:
    """Storms of 429, failing servers, dropped and hanging connections, one after another while everything is rated."""
    chance = random.Random(seed)
    troubles = {
        "429": rate_limit(),
        "429 with retry-after": rate_limit(1),
        "500": server_error,
        "dropped": drop,
        "time-out": slow(6),
    }
    seen: Counter[str] = Counter()
    began = time.monotonic()

    def weather(asked: Seen) -> ProviderAnswer:
        at = time.monotonic() - began
        storm = list(troubles)[int(at // 4) % len(troubles)]
        name = storm if at % 4 < 2 or chance.random() < 0.05 else ""
        if name == "time-out" and chance.random() > 0.1:
            name = ""
        seen[name or "answered"] += 1
        return troubles[name](asked) if name else SUCCESS(asked)

    edits = size("EDITS", 504)
    prompts = PROMPTS[: max(1, edits // 84)]
    with FakeProvider(latency=0.05, remember=False, otherwise=weather) as wire:
        loaded = study(wire, folder, prompts, {}, timeout=4, attempts=12)
        began = time.monotonic()
        summary = loaded.run()
        seconds = time.monotonic() - began
        ended = statuses(loaded)
        loaded.store.close()
    return {
        "edits × judges": f"{summary.edited} × 2",
        "scored": ended[Status.SCORED],
        "failed": ended[Status.FAILED],
        **{name: seen[name] for name in ("answered", *troubles)},
        "seconds": f"{seconds:.0f}",
    }


def _random_tokens(chance: random.Random, asked: Seen, counted: list[tuple[int, int]]) -> ProviderAnswer:
    """An answer with random tokens, most answers short and some ten times as long; what it took is counted."""
    tokens = (chance.randint(40, 400), min(2000, 1 + int(chance.lognormvariate(4.0, 0.8))))
    plain = SUCCESS(asked)
    body = json.loads(plain.body)
    names = USAGE["gemini" if asked.provider == "gemini" else "openai"]
    body["usageMetadata" if asked.provider == "gemini" else "usage"] = dict(zip(names, tokens, strict=True))
    counted.append(tokens)
    return as_json(plain.status, body)


def budgets(folder: Path, runs: int, seed: int = SEED) -> tuple[list[dict[str, Any]], int]:
    """Runs with random prices, tokens, latencies and limits: what was spent, by the server's count, against the limit.

    One call is the dearest of its run.
    """
    chance = random.Random(seed)
    counted: list[tuple[int, int]] = []
    rows: list[dict[str, Any]] = []
    over = 0
    delay = [0.0]

    def answer(asked: Seen) -> ProviderAnswer:
        time.sleep(chance.uniform(0, delay[0]))
        return _random_tokens(chance, asked, counted)

    with FakeProvider(remember=False, otherwise=answer) as wire:
        base = study(wire, folder / "base", PROMPTS[:2], {"race": ["White", "Black"], "age": ["20s", "40s"]})
        wanted = 2 * len(base.store.edits())
        base.store.close()
        for number in range(runs):
            place = folder / f"run-{number}"
            shutil.copytree(folder / "base", place)
            price = {"input": 10 ** chance.uniform(-3, 1), "output": 10 ** chance.uniform(-3, 1)}
            limit = chance.uniform(0.2, 1.3) * wanted * (220 * price["input"] + 75 * price["output"])
            delay[0] = chance.choice((0.0, 0.01, 0.05))
            millions = {way: dollars * 1e6 for way, dollars in price.items()}
            table_ = {f"simulated-{k}": millions for k in ("openai", "gemini")}
            prices = Prices("today", {}, table_, (round(chance.uniform(1, 400)), round(chance.uniform(1, 100))))
            file = StudyFile.parse(base.file.sections.model_dump(mode="json", exclude_none=True), place)
            loaded = Study.of(file)
            counted.clear()
            loaded.runner(Budget(max_cost=limit), prices).run()
            calls = [taken * price["input"] + given * price["output"] for taken, given in counted]
            spent, dearest = sum(calls), max(calls, default=0.0)
            over += spent > limit + dearest
            rows.append({"spent": spent / limit, "beyond": max(0.0, (spent - limit) / dearest) if calls else 0.0})
            loaded.store.close()
            shutil.rmtree(place)
    shares = sorted(row["spent"] for row in rows)
    worst = max(row["beyond"] for row in rows)
    told = [
        {
            "runs": runs,
            "above the limit by more than one call": over,
            "furthest above, in its dearest call": f"{worst:.2f}",
            "spent of the limit, median": f"{shares[len(shares) // 2]:.2f}",
            "lowest": f"{shares[0]:.2f}",
            "highest": f"{shares[-1]:.2f}",
        }
    ]
    return told, over


FACES = {"race": ["White", "Black"], "age": ["20s", "40s", "60s"]}


def _by_openai(loaded: Study) -> StudyFile:
    """The study's file with the judge at OpenAI alone."""
    told = loaded.file.sections.model_dump(mode="json", exclude_none=True)
    loaded.store.close()
    return StudyFile.parse({**told, "judges": [j for j in told["judges"] if j["kind"] == "openai"]}, loaded.folder)


class Killed(Exception):
    """Stands for SIGKILL: nothing after it is done."""


def batch_kills(folder: Path, kills: int, seed: int = SEED) -> dict[str, Any]:
    """A run by batch job under a quota, stopped dead at random moments of its jobs' lives, and begun again."""
    chance = random.Random(seed)
    stops = {"n": 0}
    methods = ("submit", "look", "results", "clean")
    real = {name: getattr(OpenAIJudge, name) for name in methods}

    def dying(name: str) -> Any:
        def call(self: Any, *given: Any) -> Any:
            armed = stops["n"] < kills and chance.random() < 0.25
            if armed and chance.random() < 0.5:
                stops["n"] += 1
                raise Killed
            made = real[name](self, *given)
            if armed:  # the provider has done it, and we never hear of it
                stops["n"] += 1
                raise Killed
            return made

        return call

    batch_jobs.FIRST_LOOK = batch_jobs.LAST_LOOK = batch_jobs.LOOK_AGAIN = 0.01
    asked: Counter[str] = Counter()

    def counting(seen: Seen) -> ProviderAnswer:
        asked[str(hash(seen.body))] += 1
        return SUCCESS(seen)

    ended: Counter[Status] = Counter()
    begun = studies = files = 0
    try:
        for name in methods:
            setattr(OpenAIJudge, name, dying(name))
        while stops["n"] < kills:
            studies += 1
            with FakeProvider(remember=False, otherwise=counting) as wire:
                wire.queue.most_lines = 40
                file = _by_openai(study(wire, folder / str(studies), PROMPTS, FACES))
                finished = False
                while not finished:
                    loaded, begun = Study.of(file), begun + 1
                    runner = loaded.runner()
                    runner.batch = True
                    try:
                        runner.run()
                        finished = not loaded.store.open_jobs() and not loaded.store.collected_jobs()
                        ended += statuses(loaded) if finished else Counter()
                    except Killed:
                        pass
                    finally:
                        loaded.store.close()
                files += len(wire.queue.files)
    finally:
        for name in methods:
            setattr(OpenAIJudge, name, real[name])
    return {
        "studies": studies,
        "runs": begun,
        "stopped dead": stops["n"],
        "scored": ended[Status.SCORED],
        "failed": ended[Status.FAILED],
        "answered by the provider": sum(asked.values()),
        "files left at the provider": files,
    }


def run(folder: Path) -> Validation:
    """Storms, budgets, and batch jobs whose runs are stopped."""
    stormy = storms(folder / "storms")
    spent, over = budgets(folder / "budgets", runs := size("RUNS", 200))
    jobs = batch_kills(folder / "jobs", kills := size("BATCH_KILLS", 20))
    wrong = [f"{stormy['failed']} ratings failed in the storms"] if stormy["failed"] else []
    wrong += [f"{over} of {runs} runs spent more than their limit and one call"] if over else []
    wrong += [f"{jobs['failed']} ratings failed in batch jobs"] if jobs["failed"] else []
    wrong += [f"{jobs['files left at the provider']} files were left"] if jobs["files left at the provider"] else []
    repeated = jobs["answered by the provider"] - jobs["scored"]
    wrong += [f"{repeated} ratings of batch jobs were asked twice"] if repeated else []
    return Validation(
        "Whatever a service does, every edit is rated in the end; no run spends more than its limit and one call; and "
        "batch jobs whose runs are stopped dead at any moment are neither lost nor paid for twice, and leave no file.",
        [
            "Two judges behind services with a storm every four seconds (calls by how they were answered):",
            "",
            *table([stormy]),
            "",
            "Random prices, tokens of each call (40 to 400 in; out log-normal to 2,000), latencies, assumed tokens and "
            "limits; what was spent is counted by the server:",
            "",
            *table(spent),
            "",
            "One judge by batch job, under a quota of 40 lines, every call about jobs a moment at which the run may be "
            "stopped before or after the provider has heard of it:",
            "",
            *table([jobs]),
        ],
        SEED,
        {"ratings": 2 * size("EDITS", 504), "budgets": runs, "stops": kills},
        wrong,
    )
