import { describe, expect, it } from "vitest";
import { SharedDownloads } from "../../../../../src/models/hub/download/shared-downloads.ts";
import { failureOf } from "../hub-test.ts";

const never = new AbortController().signal;
const ignore = { onBytes: (): void => {}, onRetry: (): void => {}, onMachine: (): void => {} };

describe("tasks that are shared", () => {
  it("tell a late joiner how far they are", async () => {
    const tasks = new SharedDownloads();
    const end = Promise.withResolvers<void>();
    const first = tasks.run(
      "key",
      async (report) => {
        report.onBytes(7);
        await end.promise;
        report.onBytes(9);
      },
      ignore,
      never,
    );
    await Promise.resolve();
    const seen: number[] = [];
    const second = tasks.run(
      "key",
      () => Promise.reject(new Error("not shared")),
      { ...ignore, onBytes: (bytes) => seen.push(bytes) },
      never,
    );
    end.resolve();
    await Promise.all([first, second]);

    expect(seen).toEqual([7, 9]);
  });

  it("are not joined by who comes while they end because everybody left", async () => {
    const tasks = new SharedDownloads();
    const leaving = new AbortController();
    const begun = Promise.withResolvers<void>();
    const stopping = Promise.withResolvers<void>();
    const cleared = Promise.withResolvers<void>();
    const order: string[] = [];
    const left = failureOf(
      tasks.run(
        "key",
        async (_report, signal) => {
          signal.addEventListener("abort", () => stopping.resolve());
          begun.resolve();
          await cleared.promise;
          order.push("first ended");
          throw new Error("stopped");
        },
        ignore,
        leaving.signal,
      ),
    );
    await begun.promise;
    leaving.abort(new Error("bye"));
    await stopping.promise;
    const second = tasks.run("key", () => Promise.resolve(void order.push("second began")), ignore, never);
    cleared.resolve();

    expect(await left).toEqual(new Error("bye"));
    await second;
    expect(order).toEqual(["first ended", "second began"]);
  });

  it("run again after they have failed", async () => {
    const tasks = new SharedDownloads();
    const first = await failureOf(tasks.run("key", () => Promise.reject(new Error("no")), ignore, never));
    expect(first).toEqual(new Error("no"));

    await tasks.run("key", () => Promise.resolve(), ignore, never);
  });

  it("do not wait for one another under other keys", async () => {
    const tasks = new SharedDownloads();
    const hung = tasks.run("one", () => new Promise(() => {}), ignore, never);

    await tasks.run("two", () => Promise.resolve(), ignore, never);

    expect(await Promise.race([hung, Promise.resolve("still running")])).toBe("still running");
  });
});
