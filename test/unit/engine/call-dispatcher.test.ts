import { expect, test } from "vitest";
import { CancelDeadline } from "../../../src/engine/call-dispatcher.ts";

/** An engine that was silent for so many milliseconds at a time. */
function after(...silences: readonly number[]): CancelDeadline {
  let time = 0;
  const patience = new CancelDeadline(() => time);
  patience.workBegins();
  for (const silence of silences) {
    time += silence;
    patience.heard();
  }
  return patience;
}

test.each([
  ["five seconds where steps are short", [5, 200, 3], 5000],
  ["three of its longest steps where they are long", [20, 2500, 20], 7500],
  ["half a minute where steps take minutes", [100_000], 30_000],
  ["ten seconds where no step has been seen yet", [], 10_000],
])("an engine may take %s to stop a cancelled call", (_, silences, allowedMs) => {
  expect(after(...silences).allowedMs).toBe(allowedMs);
});

test("an engine that has nothing to do is not slow", () => {
  let time = 0;
  const patience = new CancelDeadline(() => time);
  patience.workBegins();
  time = 10;
  patience.heard();
  patience.workEnds();
  time = 100_000;
  patience.heard();
  patience.workBegins();
  time += 20;
  patience.heard();
  expect(patience.allowedMs).toBe(5000);
});
