import { z } from "zod";
import { reasonOf } from "../../errors/reason-of.ts";

/** A registry answers within a second; advice is not worth a longer wait. */
const DEADLINE_MS = 4000;

const releaseSchema = z.object({
  version: z.string(),
  // Another package may have this name.
  bin: z.object({ daybreak: z.string() }),
});

/** What the package registry says: its newest release, or why none is known. */
export type Release = { readonly version: string } | { readonly unknown: string };

interface ReleaseQuestion {
  /** Address of an npm registry. */
  readonly registry: string;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  readonly deadlineMs?: number;
}

/** Asks a registry of npm for the newest release. Rejects with the signal's reason only. */
export async function newestRelease(question: ReleaseQuestion): Promise<Release> {
  const { registry, signal, deadlineMs = DEADLINE_MS } = question;
  const address = URL.parse("daybreak/latest", registry.endsWith("/") ? registry : `${registry}/`);
  if (address === null) return { unknown: `${registry} is not a registry address` };
  const { hostname } = address;
  const late = AbortSignal.timeout(deadlineMs);
  try {
    const answer = await question.fetch(address, { signal: AbortSignal.any([signal, late]) });
    if (answer.status === 404) return { unknown: `${hostname} has no package with that name` };
    if (!answer.ok) return { unknown: `${hostname} answers with status ${answer.status}` };
    const release = releaseSchema.safeParse(await answer.json());
    if (release.success) return { version: release.data.version };
    return { unknown: `the package with that name at ${hostname} is another program` };
  } catch (error) {
    signal.throwIfAborted();
    if (late.aborted) return { unknown: `${hostname} has not answered within ${deadlineMs / 1000} s` };
    return { unknown: `${hostname} cannot be reached (${innermostReason(error)})` };
  }
}

/** fetch hides the reason in the cause of "fetch failed". */
function innermostReason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof AggregateError) return innermostReason(error.cause.errors[0]);
  return error.cause instanceof Error ? innermostReason(error.cause) : reasonOf(error);
}
