import process from "node:process";

/**
 * Milliseconds of processor time of this thread in the longest turn of the event loop while the work runs: how long the
 * loop would stand still on an idle machine. Unlike a wait it does not grow when others use the processors.
 */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let before = threadMs();
  let isOver = false;
  const turn = (): void => {
    const now = threadMs();
    longest = Math.max(longest, now - before);
    before = now;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    await work();
  } finally {
    isOver = true;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return longest;
}

/** Milliseconds of processor time that this thread has used. */
export function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
