import { expect, test } from "vitest";
import { CancelDeadline } from "../../../src/engine/call-dispatcher.ts";

/** Deadline after an engine was silent for these times, in milliseconds. */
function after(...silences: readonly number[]): CancelDeadline {
  let time = 0;
  const deadlineFor = new CancelDeadline(() => time);
  deadlineFor.workBegins();
  for (const silence of silences) {
    time += silence;
    deadlineFor.messageReceived();
  }
  return deadlineFor;
}

test.each([
  ["five seconds if steps are short", [5, 200, 3], 5000],
  ["three of its longest steps if they are long", [20, 2500, 20], 7500],
  ["half a minute if steps take minutes", [100_000], 30_000],
  ["ten seconds before the first step", [], 10_000],
])("the deadline for stopping a cancelled call is %s", (_, silences, allowedMs) => {
  expect(after(...silences).allowedMs).toBe(allowedMs);
});

test("time without calls does not count as a slow step", () => {
  let time = 0;
  const deadline = new CancelDeadline(() => time);
  deadline.workBegins();
  time = 10;
  deadline.messageReceived();
  deadline.workEnds();
  time = 100_000;
  deadline.messageReceived();
  deadline.workBegins();
  time += 20;
  deadline.messageReceived();
  expect(deadline.allowedMs).toBe(5000);
});
