import { gguf } from "@huggingface/gguf";
import { array, bool, f32, type GgufFile, type GgufTensor, string, u32, writeGguf } from "../gguf-writer.ts";
import { randomNumbers } from "../random-numbers.ts";

/** Script of a model: its output. */
export interface Script {
  /** Its first turn, when tools are on offer: the call of one. */
  readonly call?: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
  /** Every other turn. */
  readonly answer: string;
}

/** More than the first request of any coding agent; a daemon lets the model have it. */
const CONTEXT = 131_072;

/** Width of the model, large enough to distinguish the embeddings of a script's tokens. */
const WIDTH = 64;
/** Width of its only attention head, which takes most of the time of a long prompt; fewer do not save time. */
const HEAD = 32;

/** So many characters of the script are one token. */
const PIECE_LENGTH = 8;

/**
 * Weight of the second token relative to the likeliest: below it, and far above what two embeddings have in common by
 * chance.
 */
const SECOND_WEIGHT = 0.75;

const CALL = { open: "<tool_call>\n", close: "\n</tool_call>" } as const;

const TOKEN_NORMAL = 1;
const TOKEN_CONTROL = 3;

/** Behind these the turn begins, the last tokens of the prompt. */
const STARTS = { call: "<|say_call|>", answer: "<|say_answer|>" } as const;

/**
 * ChatML with tools and results as Hermes and Qwen write them. Its last token chooses what is said: a call while the
 * conversation has no result, or the answer.
 */
const TEMPLATE = `{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n' }}{%- endif %}
{{- '# Tools\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' + (tool | tojson) }}{%- endfor %}
{{- '\\n</tools>\\nFor a call: <tool_call>\\n{"name": <function-name>, "arguments": <args-json-object>}\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
{{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set turn = namespace(has_result=false) %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{%- set turn.has_result = true %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if message.content %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif not (message.role == 'system' and loop.first) %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if tools and not turn.has_result %}{{- '${STARTS.call}' }}{%- else %}{{- '${STARTS.answer}' }}{%- endif %}
{%- endif %}`;

/**
 * Writes a model that generates a given script token by token, whatever the prompt: for tests of programs that send
 * prompts which no model as small and quick as this one could answer. llama.cpp computes it as any other: it has one
 * block, whose weights are zero, and each token of the script has the next one as the likeliest by far.
 * @param vocabulary - file of a model whose tokens it has as well, with ChatML's; the script's are added
 */
export async function writeTurnsModel(path: string, vocabulary: string, script: Script): Promise<void> {
  const { metadata: source } = await gguf(vocabulary, { allowLocalFile: true });
  const tokens = [...stringsAt(source, "tokenizer.ggml.tokens")];
  const scores = [...numbersAt(source, "tokenizer.ggml.scores")];
  const types = [...numbersAt(source, "tokenizer.ggml.token_type")];
  const end = numberAt(source, "tokenizer.ggml.eos_token_id");
  const known = new Set(tokens);
  const add = (token: string, type: number): number => {
    known.add(token);
    scores.push(-tokens.length);
    types.push(type);
    return tokens.push(token) - 1;
  };
  const edges: Edge[] = [];
  /** Adds the tokens of a text; gives its first and its last one. */
  const say = (text: string): { first: number; last: number } => {
    const ids = piecesOf(text, known).map((piece) => add(piece, TOKEN_NORMAL));
    for (const [at, id] of ids.entries()) if (at > 0) edges.push({ before: ids[at - 1]!, after: id });
    return { first: ids[0]!, last: ids.at(-1)! };
  };
  const answer = say(script.answer);
  edges.push({ before: add(STARTS.answer, TOKEN_CONTROL), after: answer.first });
  edges.push({ before: answer.last, after: end });
  const start = add(STARTS.call, TOKEN_CONTROL);
  if (script.call) {
    const [open, call, close] = [say(CALL.open), say(JSON.stringify(script.call)), say(CALL.close)];
    for (const [before, after] of [
      [start, open.first],
      [open.last, call.first],
      [call.last, close.first],
      [close.last, end],
    ] as const)
      edges.push({ before, after });
    edges.push({ before: start, after: call.first, isSecond: true });
    edges.push({ before: call.last, after: end, isSecond: true });
  } else edges.push({ before: start, after: answer.first });
  const metadata: GgufFile["metadata"] = {
    "general.architecture": string("llama"),
    "general.name": string("scripted"),
    "llama.context_length": u32(CONTEXT),
    "llama.embedding_length": u32(WIDTH),
    "llama.block_count": u32(1),
    "llama.feed_forward_length": u32(WIDTH),
    "llama.attention.head_count": u32(1),
    "llama.attention.head_count_kv": u32(1),
    "llama.attention.key_length": u32(HEAD),
    "llama.attention.value_length": u32(HEAD),
    "llama.rope.dimension_count": u32(HEAD),
    "llama.attention.layer_norm_rms_epsilon": f32(1e-5),
    "tokenizer.ggml.model": string("llama"),
    "tokenizer.ggml.tokens": array("string", tokens),
    "tokenizer.ggml.scores": array("f32", scores),
    "tokenizer.ggml.token_type": array("i32", types),
    "tokenizer.ggml.unknown_token_id": u32(numberAt(source, "tokenizer.ggml.unknown_token_id")),
    "tokenizer.ggml.bos_token_id": u32(numberAt(source, "tokenizer.ggml.bos_token_id")),
    "tokenizer.ggml.eos_token_id": u32(end),
    "tokenizer.ggml.add_bos_token": bool(false),
    "tokenizer.ggml.add_space_prefix": bool(false),
    "tokenizer.chat_template": string(TEMPLATE),
  };
  writeGguf(path, { metadata, tensors: tensorsOf(tokens.length, edges) });
}

/** Parts of a text, each unlike all tokens that there are: a token that comes twice could have only one next. */
function piecesOf(text: string, known: ReadonlySet<string>): string[] {
  const pieces: string[] = [];
  for (let start = 0; start < text.length;) {
    let stop = start + PIECE_LENGTH;
    const piece = (): string => text.slice(start, stop).replaceAll(" ", "▁");
    while (stop < text.length && (known.has(piece()) || pieces.includes(piece()))) stop += 1;
    // A short rest would be a token that there is already.
    if (text.length - stop < PIECE_LENGTH) stop = text.length;
    pieces.push(piece());
    start = stop;
  }
  return pieces;
}

/** Which token comes behind which. */
interface Edge {
  readonly before: number;
  readonly after: number;
  /** Only where a grammar forbids the other: beside a format that an answer must have, a call has no tags. */
  readonly isSecond?: boolean;
}

/** Signs as embeddings, as long as the norm makes them; a row of the output is the embedding of what comes before. */
function tensorsOf(size: number, edges: readonly Edge[]): GgufTensor[] {
  const random = randomNumbers(1);
  const embeddings = Float32Array.from({ length: size * WIDTH }, () => (random() < 0.5 ? -1 : 1));
  const output = new Float32Array(size * WIDTH);
  for (const { before, after, isSecond } of edges) {
    const weight = isSecond ? SECOND_WEIGHT : 1;
    for (let at = 0; at < WIDTH; at += 1)
      output[after * WIDTH + at]! += embeddings[before * WIDTH + at]! * weight;
  }
  return [
    { name: "token_embd.weight", shape: [WIDTH, size], type: "F32", data: { values: embeddings } },
    ones("output_norm.weight"),
    { name: "output.weight", shape: [WIDTH, size], type: "F32", data: { values: output } },
    ones("blk.0.attn_norm.weight"),
    ones("blk.0.ffn_norm.weight"),
    zeros("attn_q", WIDTH, HEAD),
    zeros("attn_k", WIDTH, HEAD),
    zeros("attn_v", WIDTH, HEAD),
    zeros("attn_output", HEAD, WIDTH),
    zeros("ffn_gate", WIDTH, WIDTH),
    zeros("ffn_up", WIDTH, WIDTH),
    zeros("ffn_down", WIDTH, WIDTH),
  ];
}

function zeros(name: string, ...shape: number[]): GgufTensor {
  return { name: `blk.0.${name}.weight`, shape, type: "F32", data: { fill: 0 } };
}

function ones(name: string): GgufTensor {
  return { name, shape: [WIDTH], type: "F32", data: { fill: 1 } };
}

type Source = Awaited<ReturnType<typeof gguf>>["metadata"];

function numberAt(metadata: Source, key: string): number {
  return Number(Reflect.get(metadata, key));
}

function stringsAt(metadata: Source, key: string): string[] {
  const value: unknown = Reflect.get(metadata, key);
  return Array.isArray(value) ? value.map(String) : [];
}

function numbersAt(metadata: Source, key: string): number[] {
  return stringsAt(metadata, key).map(Number);
}
