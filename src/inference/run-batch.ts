import type { Permit } from "./admission-queue.ts";

/**
 * Runs one call per item, in parallel up to the engine's slots, and returns the results in order. The caller's first permit
 * admits the whole batch; its other calls wait for their turn among other requests. The first failure ends the batch and
 * aborts its running calls.
 *
 * @param first the permit of the first call, which is released here, and the tokens of context that each call may need
 */
export async function runBatch<Item, Result>(
  items: readonly Item[],
  first: { readonly permit: Permit; readonly tokens: number },
  signal: AbortSignal,
  call: (item: Item, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  const { permit: firstPermit, tokens } = first;
  const { queue, group, onYield } = firstPermit;
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  const results = Array.from<Result>({ length: items.length });
  let next = 0;
  const work = async (own?: Permit): Promise<void> => {
    let permit = own;
    for (let index = next++; index < items.length; index = next++) {
      permit ??= await queue.acquire(ended, { tokens, bypassQueueLimit: true, group, onYield });
      try {
        results[index] = await call(items[index]!, ended);
      } finally {
        permit[Symbol.dispose]();
        permit = undefined;
      }
    }
  };
  const workers = [work(firstPermit)];
  while (workers.length < Math.min(queue.slots, items.length)) workers.push(work());
  try {
    await Promise.all(workers);
    return results;
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled(workers);
    throw error;
  } finally {
    firstPermit[Symbol.dispose]();
  }
}
