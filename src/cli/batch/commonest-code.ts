import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { z } from "zod";
import { tryJson } from "../../json/try-json.ts";

const errorSchema = z.looseObject({ code: z.string() });
const lineSchema = z.looseObject({
  error: errorSchema.nullish().catch(undefined),
  response: z
    .looseObject({ body: z.looseObject({ error: errorSchema.nullish() }) })
    .nullish()
    .catch(undefined),
});

/** The error code that most lines of a batch's error file have, and how many have it. */
export async function commonestCode(
  pieces: AsyncIterable<Uint8Array>,
): Promise<{ readonly code: string; readonly count: number } | undefined> {
  const counts = new Map<string, number>();
  const lines = createInterface({ input: Readable.from(pieces), crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of lines) {
    const { data } = lineSchema.safeParse(tryJson(line));
    const code = (data?.error ?? data?.response?.body.error)?.code;
    if (code !== undefined) counts.set(code, (counts.get(code) ?? 0) + 1);
  }
  const [commonest] = [...counts].toSorted(([, a], [, b]) => b - a);
  return commonest && { code: commonest[0], count: commonest[1] };
}
