import { array, type GgufFile, string } from "./gguf-writer.ts";
import { type LlamaOptions, tinyLlama } from "./tiny-models.ts";

const TOKEN_NORMAL = 1;
const TOKEN_CONTROL = 3;

/** Bytes that one token of a real byte-level vocabulary may hold: parts of characters, and what no text has. */
const PARTS_OF_CHARACTERS = [
  [0xe3, 0x81], // the beginning of hiragana
  [0xf0, 0x9f, 0x98], // and of smileys
  [0x80, 0x80],
  [0x81, 0x82, 0x22], // the end of a character, and a quote
  [0xe3, 0x22], // a beginning without its end
  [0xed, 0xa0], // of surrogates
  [0xc0, 0x80], // longer than need be
];

/** A small llama model like {@link tinyLlama}, with a vocabulary of bytes and of their pairs as GPT-2 has it. */
export function byteLevelLlama(options: LlamaOptions = {}): GgufFile {
  const { words = [], metadata } = options;
  const size = tokensOf(tinyLlama(options)).length;
  const bytes = Array.from({ length: 256 }, (_, byte) => [byte]);
  const texts = ['{"', '":', '",', '"}', "true", "é", "日本", "語", "😀", ' "', "\\u", "\n "];
  const pieces = [...bytes, ...PARTS_OF_CHARACTERS, ...texts.map((text) => Array.from(Buffer.from(text)))];
  const special = ["<unk>", "<s>", "</s>"];
  const normal = pieces.map((piece) => piece.map(letterOf).join(""));
  const rest = size - special.length - normal.length - words.length;
  const filling = Array.from({ length: rest }, (_, index) => `filling${index}`);
  const tokens = [...special, ...normal, ...filling, ...words];
  const types = tokens.map((token, at) =>
    at < special.length || words.includes(token) ? TOKEN_CONTROL : TOKEN_NORMAL,
  );
  return tinyLlama({
    ...options,
    metadata: {
      "tokenizer.ggml.model": string("gpt2"),
      "tokenizer.ggml.pre": string("gpt-2"),
      "tokenizer.ggml.tokens": array("string", tokens),
      "tokenizer.ggml.token_type": array("i32", types),
      "tokenizer.ggml.merges": array("string", ["t r", "u e"]),
      ...metadata,
    },
  });
}

function tokensOf({ metadata }: GgufFile): readonly unknown[] {
  const tokens = metadata["tokenizer.ggml.tokens"];
  return tokens?.type === "array" ? tokens.value : [];
}

/** The letter that stands for a byte: itself where it can be seen, else one of those from U+0100 on, in order. */
export function letterOf(byte: number): string {
  if (isVisible(byte)) return String.fromCharCode(byte);
  let invisible = 0;
  for (let lower = 0; lower < byte; lower += 1) if (!isVisible(lower)) invisible += 1;
  return String.fromCharCode(0x100 + invisible);
}

function isVisible(byte: number): boolean {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
}
