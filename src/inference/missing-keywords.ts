import type { MissingKeywords } from "../schema/grammar-work.ts";
import type { MakeGrammar } from "./make-grammar.ts";
import { RecentResults } from "./recent-results.ts";

/** Each key has up to 256 Ki characters. */
const recent = new RecentResults<readonly MissingKeywords[]>(16);

/** Of each schema, what llama.cpp's grammar of it does not have, and what nobody understands. */
export async function missingKeywords(
  schemas: readonly unknown[],
  makeGrammar: MakeGrammar,
): Promise<readonly MissingKeywords[]> {
  if (schemas.length === 0) return [];
  return await recent.of(JSON.stringify(schemas), async () => {
    const result = await makeGrammar({ kind: "llama", schemas });
    return result.kind === "llama" ? result.missing : [];
  });
}
