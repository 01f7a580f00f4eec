import type { Branch } from "../terms/branch.ts";
import type { TextSet } from "../text/text-set.ts";
import type { ValueBuilder } from "./build-value.ts";
import type { Part } from "./part.ts";
export function buildString(_branch: Branch, builder: ValueBuilder, hint: string): Part {
  return textLeaf(undefined, builder, hint);
}
export function textLeaf(_set: TextSet | undefined, _builder: ValueBuilder, _hint: string): Part {
  return { kind: "leaf", write: (w) => w.rule("string", `"\\"" [^"\\\\\\x00-\\x1f]* "\\""`) };
}
