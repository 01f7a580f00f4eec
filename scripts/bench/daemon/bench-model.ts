import { tinyLlama } from "../../../test/support/tiny-models.ts";
import { type GgufTensor, type GgufValue, writeGguf } from "../../../test/support/gguf-writer.ts";

/** Words of the bench vocabulary besides bytes and letters, like a small real model. */
const WORDS = 8000;

/** Shapes that give about 100 tokens a second on one core of today: the rate at which overhead is judged. */
const SHAPE = { embedding: 768, feedForward: 2048, blocks: 10, heads: 12, kvHeads: 4, context: 4096 };

const TOKEN_TYPES = "tokenizer.ggml.token_type";
/** Control tokens are matched as a whole and never shown; user-defined ones are matched as a whole and shown. */
const CONTROL = 3;
const USER_DEFINED = 4;
/** <unk>, <s> and </s> keep their types. */
const SPECIAL_TOKENS = 3;

/** Writes a random model of real shapes. Its text means nothing; its work is that of a trained one. */
export function writeBenchModel(file: string): void {
  const words = Array.from({ length: WORDS }, (_, index) => `word${index}`);
  const model = tinyLlama({ ...SHAPE, weights: "Q8_0", words });
  const vocabulary = model.tensors.find(({ name }) => name === "token_embd.weight");
  if (!vocabulary) throw new Error("the model has no vocabulary");
  // With an output matrix of its own it does not repeat its last token, and nearly all its tokens are words.
  const output: GgufTensor = { ...vocabulary, name: "output.weight" };
  writeGguf(file, {
    metadata: { ...model.metadata, [TOKEN_TYPES]: shownWords(model.metadata[TOKEN_TYPES]) },
    tensors: [...model.tensors, output],
  });
}

/** A prompt of about `words` tokens. */
export function benchPrompt(words: number, salt = 0): string {
  return Array.from({ length: words }, (_, index) => `word${(index * 37 + salt * 101) % WORDS}`).join("");
}

function shownWords(types: GgufValue | undefined): GgufValue {
  if (types?.type !== "array") throw new Error("the model's vocabulary has no types");
  const shown = types.value.map((type, token) =>
    type === CONTROL && token >= SPECIAL_TOKENS ? USER_DEFINED : type,
  );
  return { ...types, value: shown };
}
