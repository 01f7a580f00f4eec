import { describe, expect, it } from "vitest";
import { PullMeter, SharedDownloads } from "../../../../../src/models/hub/download/shared-downloads.ts";
import type { PullProgress } from "../../../../../src/models/hub/hub-types.ts";
import { failureOf } from "../hub-test.ts";

const never = new AbortController().signal;
const ignore = (): void => {};

describe("SharedDownloads", () => {
  it("reports the bytes so far to a caller that joins later", async () => {
    const tasks = new SharedDownloads();
    const end = Promise.withResolvers<void>();
    const first = tasks.run(
      "key",
      async (report) => {
        report(7);
        await end.promise;
        report(9);
      },
      ignore,
      never,
    );
    await Promise.resolve();
    const seen: unknown[] = [];
    const second = tasks.run(
      "key",
      () => Promise.reject(new Error("not shared")),
      (event) => seen.push(event),
      never,
    );
    end.resolve();
    await Promise.all([first, second]);

    expect(seen).toEqual([7, 9]);
  });

  it("starts a new download for a caller that joins while an abandoned one ends", async () => {
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

  it("runs again after a failure", async () => {
    const tasks = new SharedDownloads();
    const first = await failureOf(tasks.run("key", () => Promise.reject(new Error("no")), ignore, never));
    expect(first).toEqual(new Error("no"));

    await tasks.run("key", () => Promise.resolve(), ignore, never);
  });

  it("runs downloads with different keys in parallel", async () => {
    const tasks = new SharedDownloads();
    const hung = tasks.run("one", () => new Promise(() => {}), ignore, never);

    await tasks.run("two", () => Promise.resolve(), ignore, never);

    expect(await Promise.race([hung, Promise.resolve("still running")])).toBe("still running");
  });
});

function meterOf(total: number) {
  const lines: PullProgress[] = [];
  const meter = new PullMeter(total, (line) => lines.push(line));
  const reported = () =>
    lines.map((line) => (line.status === "downloading" ? line.downloadedBytes : line.status));
  return { meter, reported, lines };
}

describe("PullMeter", () => {
  it("adds up the bytes of all files", () => {
    const { meter, lines } = meterOf(30);
    for (const [file, bytes] of [
      ["a", 10],
      ["b", 5],
      ["b", 20],
    ] as const) {
      meter.update(file, bytes);
    }
    expect(lines.at(1)).toEqual({ status: "downloading", downloadedBytes: 10, totalBytes: 30 });
    expect(lines.at(2)).toEqual({ status: "downloading", downloadedBytes: 15, totalBytes: 30 });
    expect(lines.at(3)).toEqual({ status: "downloading", downloadedBytes: 30, totalBytes: 30 });
    expect(lines.at(4)).toEqual({ status: "verifying" });
  });

  it("never reports fewer bytes, even after a part was discarded", () => {
    const { meter, reported } = meterOf(100);
    for (const bytes of [60, 0, 30, 70]) meter.update("a", bytes);
    expect(reported()).toEqual([0, 60, 70]);
  });

  it("reports verifying once", () => {
    const { meter, reported } = meterOf(10);
    meter.update("a", 10);
    meter.update("a", 0);
    meter.update("a", 10);
    expect(reported()).toEqual([0, 10, "verifying"]);
  });
});
