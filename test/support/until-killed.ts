import type { TestDaemon } from "./start-daemon.ts";
import { busyOf } from "./test-fleet.ts";

/** How often an answer may be over before its machine is found: the test may be held up more than the machine. */
const TRIES = 20;

/**
 * Asks until the machine that answers has been ended meanwhile. Resolves to the answer.
 * @param ask calls `end` in the middle of its answer
 * @param workers those that may be the machine
 * @param kill ends it
 */
export async function untilKilled<Answer>(
  ask: (end: () => void) => Promise<Answer>,
  workers: () => readonly TestDaemon[],
  kill: (victim: TestDaemon) => Promise<void>,
): Promise<Answer> {
  for (let time = 0; time < TRIES; time += 1) {
    let killed: Promise<boolean> | undefined;
    const killBusy = async (): Promise<boolean> => {
      const victim = await busyOf(workers()).catch(() => undefined);
      if (victim) await kill(victim);
      return victim !== undefined;
    };
    const end = (): void => {
      killed = killBusy();
      killed.catch(() => undefined); // awaited by the caller
    };
    try {
      const answer = await ask(end);
      if (await killed) return answer;
    } finally {
      await killed;
    }
  }
  throw new Error("each answer was over before its machine was found");
}
