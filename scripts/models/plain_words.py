"""Texts without what hardly matters, to find out whether two say the same in the same words."""

from __future__ import annotations

IDLE = {"a", "an", "the"}


def plain_words(text: str) -> str:
    """Lower case, no punctuation around words, no articles: ' how do i load model ', with a space at both ends."""
    words = (word.strip(".,:;?!\"'`()") for word in text.lower().split())
    return f" {' '.join(word for word in words if word and word not in IDLE)} "
