import { letterOf } from "../byte-level-llama.ts";
import {
  array,
  bool,
  f32,
  type GgufFile,
  type GgufTensor,
  type GgufValue,
  string,
  u32,
} from "../gguf-writer.ts";
import { randomNumbers } from "../random-numbers.ts";

/**
 * A model that says given texts. It looks at nothing but its position: behind a prompt of so many tokens it says the text
 * that was written for this place. A GPT-2 of one block has what this takes: embeddings of positions, and a feed-forward
 * part in which each neuron knows one position and the token that follows.
 */

interface Script {
  /** Tokens of the prompt behind which it is said. */
  readonly behind: number;
  /** Special tokens in it are written as their text. The end of the turn follows by itself. */
  readonly text: string;
}

export interface ScriptedOptions {
  readonly chatTemplate: string;
  /** Special tokens, which llama.cpp hides in answers unless the parser of the template needs them. */
  readonly control: readonly string[];
  /** Tokens of more than a byte that are always shown. */
  readonly words?: readonly string[];
  /** The special token that ends a turn. */
  readonly end: string;
  /** The special token that begins a text, if the template wants one. */
  readonly begin?: string | undefined;
  readonly context: number;
  readonly scripts: readonly Script[];
}

const WIDTH = 64;
const TOKEN_NORMAL = 1;
const TOKEN_CONTROL = 3;
const TOKEN_USER_DEFINED = 4;
/** The product of a code of {@link WIDTH} signs with itself is 64, with another one less than about 43. */
const THRESHOLD = 53;
/** Scale at which the feed-forward part outweighs the position itself. */
const LOUDNESS = 20;

/** The file of the model. */
export function scriptedModel(options: ScriptedOptions): GgufFile {
  const { context } = options;
  const vocabulary = vocabularyOf(options);
  const random = randomNumbers(7);
  const positions = codes(context, random);
  const tokens = codes(vocabulary.tokens.length, random);
  const said = options.scripts.flatMap(({ behind, text }) =>
    tokenized(text + options.end, vocabulary).map((token, at) => ({ position: behind - 1 + at, token })),
  );
  const neurons = Math.max(32, said.length);
  const up = new Float32Array(WIDTH * neurons);
  const down = new Float32Array(WIDTH * neurons);
  said.forEach(({ position, token }, neuron) => {
    for (let at = 0; at < WIDTH; at += 1) {
      up[neuron * WIDTH + at] = positions[position * WIDTH + at]!;
      down[at * neurons + neuron] = tokens[token * WIDTH + at]! * LOUDNESS;
    }
  });
  return {
    metadata: { ...figures(context, neurons), ...vocabularyKeys(options, vocabulary) },
    tensors: [
      filled("token_embd.weight", [WIDTH, vocabulary.tokens.length], 0),
      { name: "position_embd.weight", shape: [WIDTH, context], type: "F32", data: { values: positions } },
      ...normalized("output_norm"),
      {
        name: "output.weight",
        shape: [WIDTH, vocabulary.tokens.length],
        type: "F32",
        data: { values: tokens },
      },
      ...normalized("blk.0.attn_norm"),
      filled("blk.0.attn_qkv.weight", [WIDTH, 3 * WIDTH], 0),
      filled("blk.0.attn_qkv.bias", [3 * WIDTH], 0),
      filled("blk.0.attn_output.weight", [WIDTH, WIDTH], 0),
      filled("blk.0.attn_output.bias", [WIDTH], 0),
      ...normalized("blk.0.ffn_norm"),
      { name: "blk.0.ffn_up.weight", shape: [WIDTH, neurons], type: "F32", data: { values: up } },
      filled("blk.0.ffn_up.bias", [neurons], -THRESHOLD),
      { name: "blk.0.ffn_down.weight", shape: [neurons, WIDTH], type: "F32", data: { values: down } },
      filled("blk.0.ffn_down.bias", [WIDTH], 0),
    ],
  };
}

interface Vocabulary {
  readonly tokens: readonly string[];
  readonly types: readonly number[];
  /** Ids by text, the longest text first. */
  readonly special: readonly (readonly [text: string, id: number])[];
}

function vocabularyOf({ control, words = [] }: ScriptedOptions): Vocabulary {
  const bytes = Array.from({ length: 256 }, (_, byte) => letterOf(byte));
  const tokens = [...bytes, ...control, ...words];
  const types = tokens.map((_, id) =>
    id < bytes.length
      ? TOKEN_NORMAL
      : id < bytes.length + control.length
        ? TOKEN_CONTROL
        : TOKEN_USER_DEFINED,
  );
  const special = [...control, ...words].map((text, at) => [text, bytes.length + at] as const);
  return { tokens, types, special: special.toSorted(([one], [other]) => other.length - one.length) };
}

/** Special tokens where they are written, else one token for each byte. */
function tokenized(text: string, { special }: Vocabulary): number[] {
  const tokens: number[] = [];
  for (let at = 0; at < text.length;) {
    const found = special.find(([word]) => text.startsWith(word, at));
    const character = String.fromCodePoint(text.codePointAt(at)!);
    tokens.push(...(found ? [found[1]] : Buffer.from(character)));
    at += found ? found[0].length : character.length;
  }
  return tokens;
}

/** Tokens of a script with the end of its turn. */
export function scriptLength(
  text: string,
  options: Pick<ScriptedOptions, "control" | "words" | "end">,
): number {
  return tokenized(
    text + options.end,
    vocabularyOf({ ...options, chatTemplate: "", context: 0, scripts: [] }),
  ).length;
}

function figures(context: number, neurons: number): Record<string, GgufValue> {
  return {
    "general.architecture": string("gpt2"),
    "general.name": string("scripted"),
    "gpt2.context_length": u32(context),
    "gpt2.embedding_length": u32(WIDTH),
    "gpt2.feed_forward_length": u32(neurons),
    "gpt2.block_count": u32(1),
    "gpt2.attention.head_count": u32(4),
    "gpt2.attention.layer_norm_epsilon": f32(1e-5),
  };
}

function vocabularyKeys(
  { chatTemplate, end, begin }: ScriptedOptions,
  { tokens, types }: Vocabulary,
): Record<string, GgufValue> {
  return {
    "tokenizer.ggml.model": string("gpt2"),
    "tokenizer.ggml.pre": string("gpt-2"),
    "tokenizer.ggml.tokens": array("string", tokens),
    "tokenizer.ggml.token_type": array("i32", types),
    "tokenizer.ggml.merges": array("string", ["t r"]),
    "tokenizer.ggml.eos_token_id": u32(tokens.indexOf(end)),
    ...(begin !== undefined && { "tokenizer.ggml.bos_token_id": u32(tokens.indexOf(begin)) }),
    "tokenizer.ggml.add_bos_token": bool(begin !== undefined),
    "tokenizer.chat_template": string(chatTemplate),
  };
}

/** Codes of as many +1 as -1, so that a norm leaves them as they are; any two are nearly orthogonal. */
function codes(count: number, random: () => number): Float32Array {
  const values = new Float32Array(count * WIDTH);
  for (let first = 0; first < values.length; first += WIDTH) {
    values.fill(1, first, first + WIDTH / 2).fill(-1, first + WIDTH / 2, first + WIDTH);
    for (let at = WIDTH - 1; at > 0; at -= 1) {
      const other = Math.floor(random() * (at + 1));
      const value = values[first + at]!;
      values[first + at] = values[first + other]!;
      values[first + other] = value;
    }
  }
  return values;
}

function filled(name: string, shape: number[], fill: number): GgufTensor {
  return { name, shape, type: "F32", data: { fill } };
}

function normalized(name: string): GgufTensor[] {
  return [filled(`${name}.weight`, [WIDTH], 1), filled(`${name}.bias`, [WIDTH], 0)];
}
