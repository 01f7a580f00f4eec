"""The project's own documentation as a search has it: pages, their passages, and questions that pages answer."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from conversations.words import DATA, LISTS, wordings
from embedding.wordpiece import stem, words

ROOT = Path(__file__).parents[3]
MOST_PARTS = 56
"""Words and punctuation marks in the body of a passage; one longer block is cut, several short ones share."""
STOP_WORDS = set(LISTS["stop words"])
TOO_ALIKE = 0.5
"""Shared part of the words that carry the meaning, from which two questions count as the same."""
Query = tuple[str, tuple[int, ...]]
"""A question or other text, and the passages any of which may hold the answer."""


@dataclass(frozen=True)
class Passage:
    page: str
    section: str
    """Title of the page and heading of the section."""
    body: str

    @property
    def text(self) -> str:
        """What is embedded."""
        return f"{self.section}. {self.body}"


def plain(markdown: str) -> str:
    """Markdown as running text."""
    text = re.sub(r"<!--.*?-->", " ", markdown, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"[`*|#>\\]|\[|\]\([^)]*\)|-{3,}", " ", text)).strip()


def _packed(parts: list[str]) -> list[str]:
    """Neighboring parts put together, to at most MOST_PARTS in each unless one alone has more."""
    result: list[str] = []
    size = 0
    for part in parts:
        length = len(words(part))
        if result and size + length <= MOST_PARTS:
            result[-1] += f" {part}"
            size += length
        else:
            result.append(part)
            size = length
    return result


def _bodies(markdown: str) -> list[str]:
    """Paragraphs, items of lists, rows of tables and lines of code: long ones are cut, short neighbors share."""
    text = re.sub(r"^\|[-| :]+\|$", "", markdown, flags=re.M)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |\||    ))", text)
    return _packed([piece for block in blocks for piece in _packed(plain(block).split())])


@cache
def pages() -> dict[str, str]:
    """Path and Markdown of every page."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    return {str(path.relative_to(ROOT)): path.read_text() for path in files}


@cache
def passages() -> list[Passage]:
    """Every page, cut at headings and then into blocks: what a search indexes."""
    result: list[Passage] = []
    for page, markdown in pages().items():
        title = plain((re.search(r"^# (.+)$", markdown, re.M) or ["", page])[1])
        for part in re.split(r"^(?=#{1,4} )", re.sub(r"^```.*$", "", markdown, flags=re.M), flags=re.M):
            heading = plain((re.match(r"#{1,4} (.+)", part) or ["", title])[1])
            body = re.sub(r"^#{1,4} .+$", "", part, count=1, flags=re.M)
            section = title if heading == title else f"{title}: {heading}"
            result += [Passage(page, section, text) for text in _bodies(body)]
    return result


@cache
def meaning(text: str) -> frozenset[str]:
    """The stems of the words of a question that carry its meaning."""
    return frozenset(stem(word) for word in words(text) if word not in STOP_WORDS and word.isalnum())


@cache
def search_questions() -> list[tuple[str, str]]:
    """Page and text of the questions that are for the evaluation alone."""
    lines = (DATA / "search-questions.txt").read_text("utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]  # type: ignore[misc]


def is_kept_out(text: str) -> bool:
    """Whether a text says nearly the same as a question of the evaluation, and so may not be trained on."""
    own, others = meaning(text), (meaning(question) for _, question in search_questions())
    return any(len(own & other) / max(1, len(own | other)) >= TOO_ALIKE for other in others)


def _answering(page: str, phrase: str) -> tuple[int, ...]:
    """The passages of the sections of a page that hold the phrase, in the heading if any has it there."""
    own = [(index, passage) for index, passage in enumerate(passages()) if passage.page == page]
    for part in (lambda passage: passage.section, lambda passage: passage.text):
        found = {passage.section for _, passage in own if phrase.lower() in part(passage).lower()}
        if found:
            return tuple(index for index, passage in own if passage.section in found)
    return ()


@cache
def doc_questions() -> tuple[list[Query], list[str]]:
    """Questions to our pages, and lines whose place is in no page any longer."""
    result: list[Query] = []
    lost: list[str] = []
    found: tuple[int, ...] = ()
    for line in (DATA / "doc-questions.txt").read_text("utf-8").splitlines():
        if line.startswith("@"):
            found = _answering(*line[2:].split(" | ", 1))
            if not found:
                lost.append(line)
        elif line and not line.startswith("#") and found and not is_kept_out(line):
            result.append((line, found))
    return result, lost


def _is_asked(name: str) -> bool:
    """Whether a question of the evaluation is about the row: its name stands there, or the name's last part."""
    parts = {name.lower(), name.lower().rsplit(".", 1)[-1]}
    telling = [part for part in parts if not part.isalpha() or name.isupper()]
    asked = " ".join(text for _, text in search_questions()).lower()
    return any(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", asked) for part in telling)


@cache
def table_questions() -> dict[str, list[Query]]:
    """By page, questions to the rows of its tables: one for each wording and row, but none for rows that the evaluation
    asks for."""
    result: dict[str, list[Query]] = {}
    for page, asks in wordings("tables").items():
        # Rows of each table: above the line is its head.
        tables = re.findall(r"^\|[-| :]+\|\n((?:\|.+\|\n)+)", pages().get(page, "") + "\n", re.M)
        for line in (line for table in tables for line in table.splitlines()):
            row = [plain(cell) for cell in re.split(r"(?<!\\)\|", line[1:-1])]
            holding = tuple(
                index
                for index, passage in enumerate(passages())
                if passage.page == page and row[0] in passage.body and row[-1][:40] in passage.body
            )
            if len(row[0]) < 2 or not row[-1] or not holding or _is_asked(row[0]):
                continue
            cells = row[:-1] + [""] * 4
            for ask in asks:
                text = ask.format(*cells, last=row[-1])
                if "  " not in text and text == text.strip() and not is_kept_out(text):
                    result.setdefault(page, []).append((text, holding))
    return result
