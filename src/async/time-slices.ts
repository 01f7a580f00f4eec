import { inNextTurn } from "./in-next-turn.ts";

const waiting: (() => void)[] = [];

/**
 * Resolves when the caller may do the next step of long work: one caller per turn of the event loop, however many wait. So
 * all such work together never blocks the loop for longer than its longest step.
 */
export function nextTimeSlice(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (waiting.length === 1) schedule();
  });
}

function schedule(): void {
  inNextTurn(() => {
    waiting.shift()?.();
    if (waiting.length > 0) schedule();
  });
}

/** Like Array.prototype.map, with a few elements per time slice. */
export async function mapInTimeSlices<Item, Result>(
  items: readonly Item[],
  perSlice: number,
  map: (item: Item, index: number) => Result,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const [index, item] of items.entries()) {
    if (index > 0 && index % perSlice === 0) await nextTimeSlice();
    results.push(map(item, index));
  }
  return results;
}
