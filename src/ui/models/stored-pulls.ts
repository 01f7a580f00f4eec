import { z } from "zod";

/** Downloads that have not ended, as the browser keeps them over a reload of the page. */

const keptSchema = z.array(
  z.object({
    name: z.string(),
    downloaded: z.number(),
    total: z.number(),
    /** Why it has failed. */
    problem: z.string().optional(),
  }),
);
type KeptPull = z.output<typeof keptSchema>[number];

/** In the browser's storage for all tabs: what has not ended. */
const UNFINISHED = "daybreak-pulls";
/** In this tab's: what runs in it, and goes on after a reload. */
const HERE = "daybreak-pulls-here";

export function keepPulls(pulls: readonly KeptPull[], here: readonly string[]): void {
  try {
    localStorage.setItem(UNFINISHED, JSON.stringify(pulls));
    sessionStorage.setItem(HERE, JSON.stringify(here));
  } catch {
    // A browser that stores nothing forgets them with the page; the daemon keeps what has arrived.
  }
}

export function storedPulls(): { readonly pulls: readonly KeptPull[]; readonly here: readonly string[] } {
  return {
    pulls: keptSchema.safeParse(read(() => localStorage, UNFINISHED)).data ?? [],
    here: namesHere(),
  };
}

/** Names of the downloads that ran in this tab when it was left. */
export function namesHere(): readonly string[] {
  return z.array(z.string()).safeParse(read(() => sessionStorage, HERE)).data ?? [];
}

/** @param storage asked for here, since browsers that store nothing refuse it */
function read(storage: () => Storage, key: string): unknown {
  try {
    return JSON.parse(storage().getItem(key) ?? "[]");
  } catch {
    return [];
  }
}
