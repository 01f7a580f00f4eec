"""Questions to the tables of our pages: one for each wording and row, but for rows that the evaluation asks for."""

from __future__ import annotations

import re
from functools import lru_cache

from embed_pages import Question, is_kept_out, pages, passages, plain, search_questions

TABLES = {
    "docs/errors.md": [
        "What does {0} mean?",
        "the error {0}",
        "What is the status of {0}?",
        "What can I do about {0}?",
        "Which error: {last}",
        "code when {last}",
    ],
    "docs/configuration.md": [
        "What is {0} for?",
        "the option {0}",
        "What is the default of {0}?",
        "Which option: {last}",
        "set {3}",
        "What does the variable {3} do?",
        "configure: {last}",
    ],
    "docs/cli.md": ["What does {0} do?", "command: {last}", "Which command {last}", "How do I use {0}?"],
    "docs/modelfile.md": ["the directive {0}", "What does {0} do in a Modelfile?", "range of {0} in a Modelfile"],
    "docs/gpu.md": ["What is {0} for?", "GPU: {last}", "{0} of the GPU"],
    "docs/api.md": ["type of {0}", "Is {0} required?"],
    "docs/compatibility.md": ["Is {0} honoured?", "Is {0} supported by the compatible API?", "Is {0} ignored?"],
    "docs/ollama.md": ["Is {0} honoured by the Ollama API?", "{0} in an Ollama request", "Ollama: {last}"],
    "docs/engine.md": ["What happens with {0}?", "the engine: {0}"],
    "docs/models.md": ["the alias {0}", "What does {0} stand for?", "Which repository is {0}?"],
    "docs/hub.md": ["What is {0} for?", "the setting {0}"],
}
"""Wordings by page, with the cells of a row by number."""


def _rows(page: str) -> list[list[str]]:
    result = []
    # The row above the line is the table's head.
    for table in re.findall(r"^\|[-| :]+\|\n((?:\|.+\|\n)+)", pages()[page] + "\n", re.M):
        rows = [[plain(cell) for cell in re.split(r"(?<!\\)\|", line[1:-1])] for line in table.splitlines()]
        result += [row for row in rows if len(row[0]) > 1 and row[-1]]
    return result


@lru_cache(maxsize=1)
def _asked() -> str:
    return " ".join(text for _, text in search_questions()).lower()


def _is_asked(name: str) -> bool:
    """Whether a question of the evaluation is about the row: its name stands there, or the name's last part."""
    parts = {name.lower(), name.lower().rsplit(".", 1)[-1]}
    telling = [part for part in parts if not part.isalpha() or name.isupper()]
    return any(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", _asked()) for part in telling)


@lru_cache(maxsize=1)
def table_questions() -> list[Question]:
    result = []
    for page, wordings in TABLES.items():
        for row in _rows(page):
            holding = tuple(
                index
                for index, passage in enumerate(passages())
                if passage.page == page and row[0] in passage.body and row[-1][:40] in passage.body
            )
            if not holding or _is_asked(row[0]):
                continue
            cells = row[:-1] + [""] * 4
            for wording in wordings:
                text = wording.format(*cells, last=row[-1])
                if "  " not in text and text == text.strip() and not is_kept_out(text):
                    result.append(Question(text, page, holding))
    return result
