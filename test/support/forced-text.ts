import type { Engine } from "../../src/engine/engine.ts";
import type { GenerationEvent, TokenLogprob } from "../../src/engine/protocol/generation.ts";
import { collect, NEVER, promptRequest } from "./engine-fixture.ts";
import { generated } from "./generated.ts";

interface Turn {
  readonly question: string;
  readonly answer: string;
}

/** A text that a model is made to say. */
export interface Line {
  readonly prompt: string;
  readonly text: string;
}

/** A conversation as the shipped model was trained on: it is sure of most words, as a good model of its text is. */
export const CONVERSATION: readonly Turn[] = [
  { question: "Hello", answer: "Hello! How can I help you?" },
  {
    question: "How do I load a model?",
    answer: "Send `POST /api/models/load` with its `alias`, or run `daybreak load`.",
  },
  {
    question: "And how do I download one?",
    answer: "Send `POST /api/models/pull` with its `name`, or run `daybreak pull`.",
  },
  { question: "Do I need a GPU?", answer: "No. It runs on the CPU. A GPU only makes it faster." },
  { question: "Who are you?", answer: "I am daybreak-mini, a very small demo model inside Daybreak." },
  {
    question: "How do I install Daybreak?",
    answer: "Run `npm ci` in its folder. There is nothing to compile and nothing else to install.",
  },
  {
    question: "How do I stop the server?",
    answer: "Run `daybreak stop`, or press Ctrl-C in its terminal. It finishes the running requests first.",
  },
  {
    question: "Which port does Daybreak use?",
    answer: "The server listens on port 8080 unless you set another one.",
  },
  {
    question: "How do I change the port?",
    answer: "Start it with `--http-port`, or set `SERVICE_HTTP_PORT`. Port 0 lets the system choose.",
  },
  {
    question: "Is the server open to the network?",
    answer:
      "By default it listens on `0.0.0.0`, so other machines can reach it. Set `127.0.0.1` to keep it private.",
  },
];

/** The answers of a conversation, each behind everything before it. */
export function linesOf(turns: readonly Turn[]): Line[] {
  let past = "";
  return turns.map(({ question, answer: text }) => {
    const prompt = `${past}<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;
    past = `${prompt}${text}<|im_end|>\n`;
    return { prompt, text };
  });
}

/**
 * Answers as log-probabilities, the alternatives included, for every token of a given text.
 * @param tokens - those that make the text; absent: whichever the model prefers of those that do. "cat" can be made of
 *   "c" and "at" as well, and rounding may tip which
 */
export async function logprobsOf(
  engine: Engine,
  prompt: string,
  text: string,
  tokens?: Iterable<number>,
): Promise<TokenLogprob[]> {
  // A grammar with one sentence makes the model say it; what is reported is what the model thought before.
  const sentence = tokens ? Array.from(tokens, (id) => `<[${id}]>`).join(" ") : JSON.stringify(text);
  const grammar = `root ::= ${sentence}`;
  const request = promptRequest(prompt, {
    format: { type: "grammar", grammar },
    logprobs: 20,
    maxTokens: 1000,
  });
  return logprobsIn(await collect(generated(engine, request, NEVER)));
}

/** The log-probabilities that a generation reports of the tokens of its text; the one that ends it has none. */
export function logprobsIn(events: readonly GenerationEvent[]): TokenLogprob[] {
  const all = events.flatMap((event) => (event.type === "text-delta" ? (event.logprobs ?? []) : []));
  return all.filter(({ token }) => token !== "");
}

/** exp of the mean negative log-probability. */
export function perplexity(logprobs: readonly TokenLogprob[]): number {
  return Math.exp(-logprobs.reduce((sum, { logprob }) => sum + logprob, 0) / logprobs.length);
}

export interface Difference {
  readonly mean: number;
  readonly max: number;
}

/**
 * Differences of all log-probabilities that both report.
 * @throws Error when the tokens are not the same
 */
export function compareLogprobs(one: readonly TokenLogprob[], other: readonly TokenLogprob[]): Difference {
  const differences = one.flatMap(({ token, top }, position) => {
    const counterpart = other[position];
    if (counterpart?.token !== token)
      throw new Error(`token ${position} is ${counterpart?.token}, not ${token}`);
    // A letter can be a token of its own and a byte as well: the order decides between alternatives that look alike.
    const alternatives = new Map<string, number[]>();
    for (const each of counterpart.top) {
      const alike = alternatives.get(keyOf(each));
      if (alike) alike.push(each.logprob);
      else alternatives.set(keyOf(each), [each.logprob]);
    }
    return top.flatMap((each) => {
      const logprob = alternatives.get(keyOf(each))?.shift();
      return logprob === undefined ? [] : [Math.abs(logprob - each.logprob)];
    });
  });
  return {
    mean: differences.reduce((sum, difference) => sum + difference, 0) / differences.length,
    max: Math.max(...differences),
  };
}

/** Rounding: about twice what the stock engine shows between its own settings with the shipped model's weights. */
const MEAN_DIFFERENCE = 0.08;
const LARGEST_DIFFERENCE = 0.6;

/**
 * Differences of log-probabilities of the shipped model as a share of what rounding may cause: 1 at most. A text can be
 * made of other tokens, "c" and "at" for "cat"; where rounding tips that choice, the comparison ends with it.
 */
export function shareOfRounding(one: readonly TokenLogprob[], other: readonly TokenLogprob[]): number {
  const tipped = one.findIndex(({ token }, at) => other[at] !== undefined && other[at].token !== token);
  const compared =
    tipped === -1 ? one : [...one.slice(0, tipped), { ...one[tipped]!, token: other[tipped]!.token }];
  const { mean, max } = compareLogprobs(compared, other);
  return Math.max(mean / MEAN_DIFFERENCE, max / LARGEST_DIFFERENCE);
}

/** Tokens that are parts of characters look alike as text. */
function keyOf({ token, bytes }: Pick<TokenLogprob, "token" | "bytes">): string {
  return `${token} ${bytes?.join(",")}`;
}
