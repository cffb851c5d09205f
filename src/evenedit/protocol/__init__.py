"""Define factors, prompts, rubric and measures as data, with typed readers."""

from evenedit.protocol.factors import FACTORS, Factor, Level, cells, factor, found_factor, level_code
from evenedit.protocol.prompts import PromptSet, load_prompts
from evenedit.protocol.questions import Rate
from evenedit.protocol.rubric import AXES, DEFAULT_RATES, QUESTIONS, ROLES, Rubric, default_rubric, questions_for

__all__ = [
    "AXES",
    "DEFAULT_RATES",
    "FACTORS",
    "QUESTIONS",
    "ROLES",
    "Factor",
    "Level",
    "PromptSet",
    "Rate",
    "Rubric",
    "cells",
    "default_rubric",
    "factor",
    "found_factor",
    "level_code",
    "load_prompts",
    "questions_for",
]
