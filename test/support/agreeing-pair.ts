import { sureModel } from "../../scripts/bench/speculation/agreeing-models.ts";
import type { GgufFile } from "./gguf-writer.ts";

const SHAPE = {
  embedding: 512,
  feedForward: 512,
  heads: 8,
  headWidth: 64,
  kvHeads: 2,
  vocabulary: 600,
} as const;

/** A small model and a draft model that says the same in an eighth of the layers: one token of the vocabulary after the other. */
export const agreeingPair = (): { readonly model: GgufFile; readonly draft: GgufFile } => ({
  model: sureModel({ ...SHAPE, blocks: 8 }, "Q4_0"),
  draft: sureModel({ ...SHAPE, blocks: 1 }, "Q4_0"),
});
