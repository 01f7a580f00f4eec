"""The chat model's tokenizer: a vocabulary with byte fallback, in the SentencePiece form that llama.cpp calls `llama`.

The space before a word is a token of its own, so that a word to copy has the same tokens after a space, a quote or a
line break; only words that hardly ever stand without a space before them are joined with it. No token crosses a word's
border, and no held-out word is one: its letters and uses nothing would teach. Encoding joins, again and again, the
neighboring pair whose joint token has the highest score, leftmost first: the rule of llama.cpp's llm_tokenizer_spm.
"""

import re
from functools import lru_cache

from conversations.words import DATA, read_vocabulary

SPACE = "\u2581"
SPECIALS = (
    "<unk> <|endoftext|> <|im_start|> <|im_end|> <think> </think> <tool_call> </tool_call> <tool_response> "
    "</tool_response>"
).split()
END_OF_TEXT = 1
FIRST_BYTE, FIRST_LEARNED = len(SPECIALS), len(SPECIALS) + 256
TOKEN_NORMAL, TOKEN_UNKNOWN, TOKEN_CONTROL, TOKEN_USER, TOKEN_BYTE = 1, 2, 3, 4, 6
# Each match is tokenized alone: a word with its space, a digit, a run of punctuation, a newline, spaces.
PIECES = re.compile(rf"{SPACE}?[^\W\d_]+|{SPACE}?[^\w{SPACE}\n]+|{SPACE}?_|\d|\n|{SPACE}|.", re.S)
SPECIAL_SPLIT = re.compile("(" + "|".join(re.escape(token) for token in SPECIALS[1:]) + ")")


class Tokenizer:
    """Encodes; `tokens`, `scores` and `types` go into the GGUF as they are."""

    def __init__(self) -> None:
        learned = read_vocabulary(DATA / "chat-vocabulary.txt")
        special = [TOKEN_UNKNOWN] + [TOKEN_CONTROL] * 3 + [TOKEN_USER] * 6
        self.tokens = SPECIALS + [f"<0x{byte:02X}>" for byte in range(256)] + learned
        self.scores = [0.0] * FIRST_LEARNED + [-float(rank) for rank in range(len(learned))]
        self.types = special + [TOKEN_BYTE] * 256 + [TOKEN_NORMAL] * len(learned)
        self.ids = {token: FIRST_LEARNED + rank for rank, token in enumerate(learned)}
        self._encode_piece = lru_cache(maxsize=200_000)(self._join)

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """Ids of a text in which special tokens are written out."""
        ids: list[int] = []
        for part in SPECIAL_SPLIT.split(text):
            if part in SPECIALS:
                ids.append(SPECIALS.index(part))
            elif part:
                for piece in PIECES.findall(part.replace(" ", SPACE)):
                    ids.extend(self._encode_piece(piece))
        return ids

    def _join(self, piece: str) -> tuple[int, ...]:
        symbols = list(piece)
        while True:
            best, best_id = -1, len(self.tokens)
            for index in range(len(symbols) - 1):
                joined = self.ids.get(symbols[index] + symbols[index + 1])
                # A lower id is a higher score.
                if joined is not None and joined < best_id:
                    best, best_id = index, joined
            if best < 0:
                break
            symbols[best : best + 2] = [symbols[best] + symbols[best + 1]]
        ids: list[int] = []
        for symbol in symbols:
            known = self.ids.get(symbol)
            ids.extend([known] if known is not None else [FIRST_BYTE + byte for byte in symbol.encode()])
        return tuple(ids)
