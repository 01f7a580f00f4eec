import type { Slot } from "./admission-queue.ts";

/**
 * Runs one call for each item, in parallel up to the engine's slots, and returns the results in order. The
 * batch is admitted as a whole, by the caller who got its first slot; its further calls wait for their turn
 * among the other requests. The first failure ends the batch and aborts the calls under way.
 *
 * @param first the slot of the first call, taken over and freed here, and the tokens of context that each call may need
 */
export async function runBatch<Item, Result>(
  items: readonly Item[],
  first: { readonly slot: Slot; readonly tokens: number },
  signal: AbortSignal,
  call: (item: Item, signal: AbortSignal) => Promise<Result>,
): Promise<Result[]> {
  const { slot: firstSlot, tokens } = first;
  const { queue } = firstSlot;
  const stop = new AbortController();
  const onAbort = () => stop.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });

  const results = Array.from<Result>({ length: items.length });
  let next = 0;
  const work = async (ownSlot?: Slot): Promise<void> => {
    let slot = ownSlot;
    for (let index = next++; index < items.length; index = next++) {
      slot ??= await queue.acquire(stop.signal, { tokens, admitted: true });
      try {
        results[index] = await call(items[index]!, stop.signal);
      } finally {
        slot[Symbol.dispose]();
        slot = undefined;
      }
    }
  };
  const workers = [work(firstSlot)];
  while (workers.length < Math.min(queue.slots, items.length)) workers.push(work());
  try {
    await Promise.all(workers);
    return results;
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled(workers);
    throw error;
  } finally {
    signal.removeEventListener("abort", onAbort);
    firstSlot[Symbol.dispose]();
  }
}
