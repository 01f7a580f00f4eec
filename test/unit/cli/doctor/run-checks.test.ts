import { describe, expect, it } from "vitest";
import { createCheck as check, ok, runChecks } from "../../../../src/cli/doctor/run-checks.ts";

const never = (): AbortSignal => new AbortController().signal;

describe("runChecks", () => {
  it("runs checks concurrently and returns their findings in order", async () => {
    const first = Promise.withResolvers<void>();
    const findings = await runChecks(
      [
        check("one", async () => {
          await first.promise;
          return [ok("done")];
        }),
        check("two", async () => {
          first.resolve();
          return [ok("done"), { name: "three", ...ok("done") }];
        }),
      ],
      never(),
    );
    expect(findings.map(({ name }) => name)).toEqual(["one", "two", "three"]);
  });

  it("returns a finding for a check that fails or exceeds its deadline", async () => {
    const findings = await runChecks(
      [
        check("broken", async () => {
          throw new Error("no such thing");
        }),
        check("late", async () => await new Promise(() => {}), 20),
        check("fine", async () => [ok("done")]),
      ],
      never(),
    );
    expect(findings).toMatchObject([
      { name: "broken", verdict: "problem", message: expect.stringContaining("no such thing") },
      { name: "late", verdict: "note", message: "unknown: it took longer than 0.02 s" },
      { name: "fine", verdict: "ok" },
    ]);
  });

  it("rejects when the command is interrupted", async () => {
    const controller = new AbortController();
    const reason = new Error("interrupted");
    const run = runChecks([check("late", async () => await new Promise(() => {}))], controller.signal);
    controller.abort(reason);
    await expect(run).rejects.toBe(reason);
  });
});
