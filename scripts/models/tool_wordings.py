"""More ways to ask for the kinds whose held-out wordings are in the evaluation, for training alone: a block for each
kind in data/tool-wordings.txt, its first name and then a wish a line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from plain_words import plain_words
from tool_kind import ToolKind, check_slots
from words import templates

FILE = Path(__file__).parent / "data" / "tool-wordings.txt"


def more_wordings(kinds: Iterable[ToolKind]) -> dict[str, list[str]]:
    """Wishes by a kind's first name, without those that say the held-out one in the same words.

    Raises ValueError for a wish that does not hold each slot once, KeyError for a name that no kind has.
    """
    by_name = {kind.names[0]: kind for kind in kinds}
    result: dict[str, list[str]] = {}
    for block in re.split(r"\n\s*\n", FILE.read_text().strip()):
        name, *wishes = (line.strip() for line in block.splitlines())
        kind = by_name[name]
        for wish in wishes:
            check_slots(wish, kind.parameters)
        held = {plain_words(wish) for wish in templates(kind.asks, True)}
        result[name] = [wish for wish in wishes if plain_words(wish) not in held]
    return result
