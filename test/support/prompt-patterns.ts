import type { Engine } from "../../src/engine/engine.ts";
import { collect, doneOf, NEVER, promptRequest, textOf } from "./engine-fixture.ts";
import { generated } from "./generated.ts";

/** A way in which conversations share what they begin with. */
type PromptPattern = (ask: (prompt: string) => Promise<string>) => Promise<void>;

/** Words that no other name begins with. */
export function words(name: string, count: number): string {
  return Array.from({ length: count }, (_, at) => `${name}${at * 7} `).join("");
}

const letters = "abcdefghijklmnopqrstuvwxyz".split("");

/** Six conversations, more than there are slots, take turns. */
const sixChats: PromptPattern = async (ask) => {
  const chats = letters.slice(0, 6).map((letter) => words(letter, 30));
  for (let round = 0; round < 4; round++) {
    for (const [at, chat] of chats.entries())
      chats[at] = chat + (await ask(chat)) + words(`${letters[at]}q`, 3);
  }
};

/** Two conversations with one system prompt take turns. */
const twoChats: PromptPattern = async (ask) => {
  const chats = letters.slice(0, 2).map((letter) => words("system", 20) + words(letter, 10));
  for (let round = 0; round < 5; round++) {
    for (const [at, chat] of chats.entries())
      chats[at] = chat + (await ask(chat)) + words(`${letters[at]}q`, 3);
  }
};

/** Four requests with one system prompt at once, twice. */
const parallel: PromptPattern = async (ask) => {
  for (const group of [letters.slice(0, 4), letters.slice(4, 8)])
    await Promise.all(group.map(async (letter) => await ask(words("system", 25) + words(letter, 5))));
};

/** Conversations that part from one, and from each other, and are asked for in any order. */
const tree: PromptPattern = async (ask) => {
  const root = words("root", 15);
  const stems = letters.slice(0, 3).map((letter) => root + words(letter, 10));
  const leaves = stems.flatMap((stem, at) =>
    [0, 1, 2].map((leaf) => stem + words(`${letters[at]}${leaf}x`, 6)),
  );
  for (const stem of stems) await ask(stem);
  const order = [0, 3, 6, 1, 4, 7, 2, 5, 8];
  for (const leaf of [...order, ...order.toReversed()]) await ask(leaves[leaf]!);
};

export const PROMPT_PATTERNS: ReadonlyMap<string, PromptPattern> = new Map([
  ["six chats taking turns", sixChats],
  ["two chats with one system prompt", twoChats],
  ["four at once with one system prompt", parallel],
  ["a tree of branches", tree],
]);

export interface Reuse {
  /** Tokens of prompts that were not read again. */
  readonly reused: number;
  /** Tokens with which an earlier prompt or its answer began as well, without the last one, which is always read. */
  readonly reusable: number;
  /** Tokens of all prompts. */
  readonly prompts: number;
}

/** Tokens of each answer: enough to be a part of the next prompt. */
const ANSWER_TOKENS = 4;

/** Runs a pattern on an engine that has not seen it yet; four requests at once are the most. */
export async function measureReuse(
  engine: Pick<Engine, "generate" | "tokenize">,
  name: string,
): Promise<Reuse> {
  let [reused, reusable, prompts] = [0, 0, 0];
  const earlier: number[][] = [];
  const tokensOf = async (text: string): Promise<number[]> => [
    ...(await engine.tokenize(text, { addSpecial: true, parseSpecial: true }, NEVER)),
  ];
  await PROMPT_PATTERNS.get(name)?.(async (part) => {
    const prompt = `${name}: ${part}`; // nothing that another pattern begins with
    const tokens = await tokensOf(prompt);
    const known = earlier.map((other) => commonBeginning(other, tokens));
    earlier.push(tokens);
    reusable += Math.min(tokens.length - 1, Math.max(0, ...known));
    const events = await collect(
      generated(engine, promptRequest(prompt, { maxTokens: ANSWER_TOKENS }), NEVER),
    );
    const { cachedTokens, promptTokens } = doneOf(events).usage;
    reused += cachedTokens;
    prompts += promptTokens;
    const answer = textOf(events);
    earlier.push(await tokensOf(prompt + answer));
    return answer;
  });
  return { reused, reusable, prompts };
}

function commonBeginning(a: readonly number[], b: readonly number[]): number {
  const parted = a.findIndex((token, at) => token !== b[at]);
  return parted < 0 ? a.length : parted;
}
