import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Worker } from "node:worker_threads";
import { Watchdog } from "../../../src/async/timers.ts";

/** Blocks this process, like SIGSTOP. */
function holdUp(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}

describe("a watchdog", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test("calls back once, after its time", () => {
    const onSilence = vi.fn<() => void>();
    const watchdog = new Watchdog(1000, onSilence);
    vi.advanceTimersByTime(999);
    expect(onSilence).not.toHaveBeenCalled();
    vi.advanceTimersByTime(2);
    expect(onSilence).toHaveBeenCalledOnce();
    vi.advanceTimersByTime(10_000);
    expect(onSilence).toHaveBeenCalledOnce();
    watchdog.stop();
  });

  test("that is reset repeatedly does not call back, and waits its full time after the last reset", () => {
    const onSilence = vi.fn<() => void>();
    const watchdog = new Watchdog(1000, onSilence);
    for (let time = 0; time < 20; time += 1) {
      vi.advanceTimersByTime(950);
      watchdog.reset();
    }
    vi.advanceTimersByTime(999);
    expect(onSilence).not.toHaveBeenCalled();
    vi.advanceTimersByTime(102);
    expect(onSilence).toHaveBeenCalledOnce();
  });

  test("that is stopped does not call back, even if its time is over", () => {
    const onSilence = vi.fn<() => void>();
    const watchdogs = [new Watchdog(1000, onSilence), new Watchdog(1000, onSilence)];
    watchdogs[0]?.stop();
    // The last step, without the tick after it.
    vi.advanceTimersToNextTimer();
    for (let step = 1; step < 10; step += 1) vi.advanceTimersToNextTimer();
    watchdogs[1]?.stop();
    vi.advanceTimersByTime(10_000);
    expect(onSilence).not.toHaveBeenCalled();
  });

  test.each([Number.POSITIVE_INFINITY, 1e12])("of %d ms does not call back immediately", (milliseconds) => {
    const onSilence = vi.fn<() => void>();
    const watchdog = new Watchdog(milliseconds, onSilence);
    vi.advanceTimersByTime(60_000);
    expect(onSilence).not.toHaveBeenCalled();
    watchdog.stop();
  });
});

test("messages sent while this process was suspended reset a watchdog, and the suspension does not count", async () => {
  // Sends a message every ten milliseconds.
  const busy = new Worker(
    `const { parentPort } = require("node:worker_threads"); setInterval(() => parentPort.postMessage(1), 10);`,
    { eval: true },
  );
  onTestFinished(async () => void (await busy.terminate()));
  await once(busy, "message");
  const onSilence = vi.fn<() => void>();
  const watchdog = new Watchdog(100, onSilence);
  let heard = 0;
  busy.on("message", () => {
    heard += 1;
    watchdog.reset();
  });
  for (let pause = 0; pause < 2; pause += 1) {
    // Timers run next.
    await new Promise(setImmediate);
    holdUp(150);
    const before = heard;
    await expect.poll(() => heard, { interval: 1 }).toBeGreaterThan(before);
  }
  expect(onSilence).not.toHaveBeenCalled();
  watchdog.stop();
});
