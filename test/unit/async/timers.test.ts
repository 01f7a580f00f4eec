import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Worker } from "node:worker_threads";
import { Watchdog } from "../../../src/async/timers.ts";

/** Holds up this process, as SIGSTOP does. */
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

  test("calls back once, when the time is over", () => {
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

  test("that is reset again and again is silent, and waits for the whole time after the last one", () => {
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

  test("that is stopped is silent, also when its time is over already", () => {
    const onSilence = vi.fn<() => void>();
    const watchdogs = [new Watchdog(1000, onSilence), new Watchdog(1000, onSilence)];
    watchdogs[0]?.stop();
    // The last step, without the turn after it.
    vi.advanceTimersToNextTimer();
    for (let step = 1; step < 10; step += 1) vi.advanceTimersToNextTimer();
    watchdogs[1]?.stop();
    vi.advanceTimersByTime(10_000);
    expect(onSilence).not.toHaveBeenCalled();
  });

  test.each([Number.POSITIVE_INFINITY, 1e12])("of %d ms does not call back at once", (milliseconds) => {
    const onSilence = vi.fn<() => void>();
    const watchdog = new Watchdog(milliseconds, onSilence);
    vi.advanceTimersByTime(60_000);
    expect(onSilence).not.toHaveBeenCalled();
    watchdog.stop();
  });
});

test("what was sent while this process was held up counts, and the pause itself does not", async () => {
  // Says something every ten milliseconds.
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
    // Timers are next after this.
    await new Promise(setImmediate);
    holdUp(150);
    const before = heard;
    await expect.poll(() => heard, { interval: 1 }).toBeGreaterThan(before);
  }
  expect(onSilence).not.toHaveBeenCalled();
  watchdog.stop();
});
