import type { TokenIds } from "../../engine/protocol/calls.ts";
import type { Inference } from "../../inference/inference.ts";
import type { InfillFile, InfillParts } from "../../inference/infill-prompt.ts";
import type { Model } from "../../models/model.ts";

/** Share of the context for the text before a gap, as in llama.cpp; the rest of both is for the text after it. */
const PREFIX_SHARE = 3 / 4;
/** Share of the context for the answer when the request does not limit it. */
const ANSWER_SHARE = 1 / 4;
/** For the tokens between the parts of the prompt. */
const MARKER_TOKENS = 16;
/** For those around the name of a file. */
const FILE_TOKENS = 4;

/** Hardly any token is longer: what is beyond is not even tokenized, which would keep the engine from its other requests. */
const MOST_CHARACTERS = 64;

/** What is needed to count tokens, and to cut a text between them. */
type Tokens = Pick<Inference, "tokenize" | "detokenize">;

/**
 * Shortens what an editor sends to what the context holds beside the answer, as llama.cpp's server does: of the text before
 * the gap the end is kept, of the text after it the beginning, and of the other files the last ones.
 * @param limit tokens of the answer
 */
export async function fitInfill(
  { prefix, suffix, extra = [], middle = "" }: InfillParts,
  { alias, contextSize }: Pick<Model, "alias" | "contextSize">,
  limit: number | undefined,
  inference: Tokens,
  signal: AbortSignal,
): Promise<InfillParts> {
  const encode = async (text: string): Promise<TokenIds> =>
    await inference.tokenize(
      { model: alias, text, options: { addSpecial: false, parseSpecial: false } },
      signal,
    );
  const decode = async (tokens: TokenIds): Promise<string> =>
    await inference.detokenize({ model: alias, tokens }, signal);
  const answer = Math.min(limit ?? contextSize * ANSWER_SHARE, contextSize * (1 - ANSWER_SHARE));
  const most = contextSize * MOST_CHARACTERS;
  const [near, next] = [prefix.slice(-most), suffix.slice(0, most)];
  const [before, after, begun] = await Promise.all([encode(near), encode(next), encode(middle.slice(-most))]);
  let room = Math.floor(contextSize - answer) - MARKER_TOKENS - begun.length;
  const mostBefore = Math.max(0, Math.floor(Math.max(room * PREFIX_SHARE, room - after.length)));
  const keptBefore = Math.min(before.length, mostBefore);
  const keptAfter = Math.min(after.length, Math.max(0, room - keptBefore));
  room -= keptBefore + keptAfter;
  const kept: InfillFile[] = [];
  for (const file of extra.toReversed()) {
    if (file.text.length > most) break;
    const [text, name] = await Promise.all([encode(file.text), encode(file.filename)]);
    room -= text.length + name.length + FILE_TOKENS;
    if (room < 0) break;
    kept.unshift(file);
  }
  return {
    prefix: keptBefore < before.length ? await decode(before.subarray(before.length - keptBefore)) : near,
    suffix: keptAfter < after.length ? begunAs(next, await decode(after.subarray(0, keptAfter))) : next,
    extra: kept,
    middle,
  };
}

/** Some tokenizers put a blank in front of every text, and would do so again. */
function begunAs(original: string, text: string): string {
  return text.startsWith(" ") && !original.startsWith(" ") ? text.slice(1) : text;
}
