import type { GenerationEvent, TokenLogprob } from "../../../src/engine/protocol/generation.ts";
import { randomPieces } from "../inference/random-pieces.ts";

/** Events of an engine whose model thinks and calls tools. */
export const THINKING_AND_TOOLS: readonly GenerationEvent[] = [
  { type: "start" },
  { type: "prompt-progress", processed: 0, total: 24 },
  { type: "prompt-progress", processed: 24, total: 24 },
  { type: "reasoning-delta", text: "The user wants " },
  { type: "reasoning-delta", text: "the weather." },
  { type: "text-delta", text: "Let me " },
  { type: "text-delta", text: "look — “ok”." },
  { type: "tool-call-start", index: 0, id: "call_a", name: "get_weather" },
  { type: "tool-call-delta", index: 0, arguments: '{"city":' },
  { type: "tool-call-delta", index: 0, arguments: '"Köln"}' },
  { type: "tool-call-start", index: 1, id: "call_b", name: "get_time" },
  { type: "tool-call-delta", index: 1, arguments: "{}" },
  {
    type: "done",
    reason: "tool_calls",
    usage: { promptTokens: 24, completionTokens: 31, cachedTokens: 8, reasoningTokens: 6 },
    timings: { promptMs: 100, completionMs: 310 },
  },
];

export const PLAIN_TEXT: readonly GenerationEvent[] = [
  { type: "start" },
  { type: "prompt-progress", processed: 5, total: 5, cached: 2, elapsedMs: 7.4 },
  { type: "text-delta", text: "Hello" },
  { type: "text-delta", text: " world" },
  {
    type: "done",
    reason: "stop",
    usage: { promptTokens: 5, completionTokens: 2, cachedTokens: 0, reasoningTokens: 0 },
    timings: { promptMs: 10, completionMs: 20 },
  },
];

/** Progress of {@link PLAIN_TEXT}'s prompt, in the format of every API. */
export const PROGRESS = { total: 5, cache: 2, processed: 5, time_ms: 7 };

const logprob = (token: string): TokenLogprob => ({
  id: token.length,
  token,
  logprob: -0.5,
  bytes: [...Buffer.from(token)],
  top: [{ id: 120, token: "x", logprob: -1, bytes: [120] }],
});

export const WITH_LOGPROBS: readonly GenerationEvent[] = PLAIN_TEXT.map((event) =>
  event.type === "text-delta" ? { ...event, logprobs: [logprob(event.text)] } : event,
);

/** Stop sequence of the random answers that end with one. */
export const STOP = "END";

/**
 * Returns a random answer: deltas of any length, with or without thinking, log probabilities and tool calls. It ends by
 * itself, with a stop sequence, with tool calls or at the token limit. The limit may truncate the last call, unless
 * `cutCalls` is false.
 */
export function randomAnswer(random: () => number, { cutCalls = true } = {}): GenerationEvent[] {
  const words = "Grüße an alle, “wirklich” alle! 🙂\n{}[]<>";
  const maybe = (text: string): string => (random() < 0.5 ? text : "");
  const count = (most: number): number => Math.floor(random() * (most + 1));
  const calls = count(2);
  const isScored = random() < 0.3;
  const isCut = random() < 0.3;
  const argumentsOf = (index: number): string => {
    const json = JSON.stringify({ text: words, index });
    return isCut && cutCalls && index === calls - 1 ? json.slice(0, count(json.length)) : json;
  };
  const reason = isCut ? "length" : calls > 0 ? "tool_calls" : "stop";
  return [
    { type: "start" },
    { type: "prompt-progress", processed: 9, total: 9 },
    ...randomPieces(maybe(words), random).map((text) => ({ type: "reasoning-delta", text }) as const),
    ...randomPieces(maybe(words), random).map((text) => textDelta(text, isScored)),
    ...Array.from({ length: calls }, (_, index): GenerationEvent[] => [
      { type: "tool-call-start", index, id: `call_${index}`, name: `tool_${index}` },
      ...randomPieces(argumentsOf(index), random).map(
        (text) => ({ type: "tool-call-delta", index, arguments: text }) as const,
      ),
    ]).flat(),
    {
      type: "done",
      reason,
      ...(reason === "stop" && random() < 0.5 && { stopSequence: STOP }),
      usage: {
        promptTokens: 9,
        completionTokens: 40 + count(9),
        cachedTokens: count(9),
        reasoningTokens: count(9),
      },
      timings: { promptMs: 1, completionMs: 2 },
    },
  ];
}

function textDelta(text: string, isScored: boolean): GenerationEvent {
  return isScored ? { type: "text-delta", text, logprobs: [logprob(text)] } : { type: "text-delta", text };
}

/** Returns a random answer that fails with this error, before its first token or later. */
export async function* randomFailure(random: () => number, error: Error): AsyncGenerator<GenerationEvent> {
  const events = randomAnswer(random);
  yield* events.slice(0, Math.floor(random() * events.length));
  throw error;
}

/** Returns an answer that fails with this error after its first tokens. */
export async function* failing(error: Error): AsyncGenerator<GenerationEvent> {
  yield* PLAIN_TEXT.slice(0, 3);
  throw error;
}
