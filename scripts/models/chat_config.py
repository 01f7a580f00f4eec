"""The shape of daybreak-mini."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ChatConfig:
    """A Llama-style decoder with tied embeddings. Widths are multiples of 256, which K-quants need."""

    width: int = 256
    layers: int = 6
    heads: int = 4
    kv_heads: int = 4
    hidden: int = 512
    context: int = 2048
    rope_base: float = 10_000.0
    norm_epsilon: float = 1e-5

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    @property
    def kv_width(self) -> int:
        return self.kv_heads * self.head_width

    def shapes(self, vocabulary: int) -> dict[str, tuple[int, ...]]:
        """Every parameter's name and shape, rows first."""
        result: dict[str, tuple[int, ...]] = {"embedding.weight": (vocabulary, self.width)}
        for layer in range(self.layers):
            prefix = f"layers.{layer}."
            result |= {
                f"{prefix}attention_norm.weight": (self.width,),
                f"{prefix}query.weight": (self.width, self.width),
                f"{prefix}key.weight": (self.kv_width, self.width),
                f"{prefix}value.weight": (self.kv_width, self.width),
                f"{prefix}output.weight": (self.width, self.width),
                f"{prefix}mlp_norm.weight": (self.width,),
                f"{prefix}gate.weight": (self.hidden, self.width),
                f"{prefix}up.weight": (self.hidden, self.width),
                f"{prefix}down.weight": (self.width, self.hidden),
            }
        result["norm.weight"] = (self.width,)
        return result
