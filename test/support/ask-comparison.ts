import path from "node:path";
import type { Engine } from "../../src/engine/engine.ts";
import type { EngineSpec } from "../../src/engine/protocol/engine-spec.ts";
import type { TokenLogprob } from "../../src/engine/protocol/generation.ts";
import { collect, engineSpec, NEVER, promptRequest, SHIPPED_MODEL } from "./engine-fixture.ts";
import { CONVERSATION, logprobsIn, logprobsOf } from "./forced-text.ts";
import { type Comparison, LIKELIEST_TOKENS } from "./stock-comparisons.ts";
import { generated } from "./generated.ts";

/** A line of a comparison as engines are asked for it. */
export interface AskedLine {
  /** With the past that the comparison wants before it. */
  readonly prompt: string;
  readonly text?: string | undefined;
  /** The tokens that make the text. */
  readonly tokens?: readonly number[] | undefined;
}

/** Makes the model of a comparison in a folder and says how to load it. */
export function specOf({ name, makeModel, settings }: Comparison, folder: string): EngineSpec {
  const file = makeModel ? path.join(folder, `${name}.gguf`) : SHIPPED_MODEL;
  makeModel?.(file);
  return engineSpec(file, settings);
}

/**
 * Fixes what the vocabulary decides: which tokens make a text, and where a past of so many tokens ends.
 * @param engine - ours, with the shipped model: stock cannot tell tokens
 */
export async function askedLines({ lines, pastTokens }: Comparison, engine: Engine): Promise<AskedLine[]> {
  const past = pastTokens === undefined ? "" : await textOfTokens(engine, pastTokens);
  return await Promise.all(
    lines.map(async (line) => {
      const prompt = past + line.prompt;
      if (!("text" in line)) return { prompt };
      const tokens = await engine.tokenize(line.text, { addSpecial: false, parseSpecial: false }, NEVER);
      return { prompt, text: line.text, tokens: [...tokens] };
    }),
  );
}

/** Answers until they are so many tokens. */
async function textOfTokens(engine: Engine, count: number): Promise<string> {
  const answers = CONVERSATION.map(({ answer }) => answer).join(" ");
  const tokens = await engine.tokenize(
    answers.repeat(count / 20),
    { addSpecial: true, parseSpecial: true },
    NEVER,
  );
  const { bytes } = await engine.pieces(tokens.slice(0, count), NEVER);
  return new TextDecoder().decode(bytes);
}

/** Measures a line token by token. */
export async function say(engine: Engine, { prompt, text, tokens }: AskedLine): Promise<TokenLogprob[]> {
  if (text !== undefined) return await logprobsOf(engine, prompt, text, tokens);
  const request = promptRequest(prompt, { logprobs: 20, maxTokens: LIKELIEST_TOKENS });
  return logprobsIn(await collect(generated(engine, request, NEVER)));
}

/** The same of lines, one after another. */
export async function sayAll(engine: Engine, lines: readonly AskedLine[]): Promise<TokenLogprob[][]> {
  const said: TokenLogprob[][] = [];
  for (const line of lines) said.push(await say(engine, line));
  return said;
}
