import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { ServiceError } from "../../../src/errors/service-error.ts";
import type { PullProgress, PullResult } from "../../../src/models/hub/hub-types.ts";
import { type PullStep, PullSteps, QuantizeSteps } from "../../../src/models/progress-steps.ts";
import type { QuantizedModel, QuantizeProgress } from "../../../src/models/quantize/quantize-options.ts";
import { fakeModel } from "../../support/fake-models.ts";

const result: PullResult = { alias: "mini", repo: "owner/repo", sizeBytes: 1000 };

const unheard = (_progress: PullProgress): void => undefined;

/** Creates a pull that the test controls, with a clock that the test sets. */
function scripted() {
  const outcome = Promise.withResolvers<PullResult>();
  let report = unheard;
  let time = 0;
  const steps = new PullSteps(
    (onProgress) => {
      report = onProgress;
      return outcome.promise;
    },
    () => time,
  );
  return {
    steps,
    downloading: (downloadedBytes: number, totalBytes = 1000) => {
      time += 1000;
      report({ status: "downloading", downloadedBytes, totalBytes });
    },
    retrying: (reason: string, waitMs: number) => report({ status: "retrying", reason, waitMs }),
    verifying: () => report({ status: "verifying" }),
    succeed: () => outcome.resolve(result),
    fail: () => outcome.reject(new ServiceError("checksum_mismatch", "bad hash")),
  };
}

async function collect(steps: AsyncIterable<PullStep>): Promise<PullStep[]> {
  const all: PullStep[] = [];
  for await (const step of steps) all.push(step);
  return all;
}

describe("PullSteps", () => {
  test("yields downloading from 0 to 1, verifying, success", async () => {
    const pull = scripted();
    const iterator = pull.steps[Symbol.asyncIterator]();
    const seen: unknown[] = [];
    for (const bytes of [0, 250, 1000]) {
      pull.downloading(bytes);
      seen.push((await iterator.next()).value);
    }
    pull.verifying();
    seen.push((await iterator.next()).value, (await iterator.next()).value);
    pull.succeed();
    seen.push((await iterator.next()).value);
    expect(seen).toEqual([
      { status: "downloading", progress: 0, totalBytes: 1000, downloadedBytes: 0 },
      { status: "downloading", progress: 0.25, totalBytes: 1000, downloadedBytes: 250 },
      { status: "downloading", progress: 1, totalBytes: 1000, downloadedBytes: 1000 },
      { status: "downloading", progress: 1, totalBytes: 1000, downloadedBytes: 1000 },
      { status: "verifying" },
      { status: "success", model: "mini" },
    ]);
    expect((await iterator.next()).done).toBe(true);
  });

  test("yields complete steps for a model that is on disk already", async () => {
    const pull = scripted();
    pull.succeed();
    await pull.steps.started();
    expect(await collect(pull.steps)).toEqual([
      { status: "downloading", progress: 1, totalBytes: 1000, downloadedBytes: 1000 },
      { status: "verifying" },
      { status: "success", model: "mini" },
    ]);
  });

  test("keeps the order if several files are verified one by one", async () => {
    const pull = scripted();
    const all = collect(pull.steps);
    pull.downloading(400);
    pull.verifying();
    await Promise.resolve();
    pull.downloading(1000);
    pull.verifying();
    pull.succeed();
    const statuses = (await all).map((step) => step.status);
    expect(statuses.slice(-2)).toEqual(["verifying", "success"]);
    expect(statuses.filter((status) => status === "verifying")).toHaveLength(1);
  });

  test("never decreases the progress", async () => {
    const pull = scripted();
    const iterator = pull.steps[Symbol.asyncIterator]();
    pull.downloading(500);
    expect((await iterator.next()).value).toMatchObject({ progress: 0.5 });
    const next = iterator.next();
    pull.downloading(100);
    await Promise.resolve();
    pull.downloading(600);
    expect((await next).value).toMatchObject({ progress: 0.6 });
  });

  test("ends with the error if the download fails", async () => {
    const pull = scripted();
    pull.downloading(1000);
    await pull.steps.started();
    pull.fail();
    await expect(collect(pull.steps)).rejects.toMatchObject({ code: "checksum_mismatch" });
  });

  test("reports a failure before the first byte before the stream begins", async () => {
    const pull = scripted();
    pull.downloading(0);
    pull.fail();
    await expect(pull.steps.started()).rejects.toMatchObject({ code: "checksum_mismatch" });
  });

  test("reports the reason of pauses, before the first byte and later", async () => {
    const pull = scripted();
    pull.retrying("connect ECONNREFUSED 127.0.0.1:9", 500);
    await pull.steps.started();
    const iterator = pull.steps[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual({
      status: "downloading",
      progress: 0,
      totalBytes: 0,
      downloadedBytes: 0,
      note: "connect ECONNREFUSED 127.0.0.1:9; trying again in 0.5 s",
    });
    const next = iterator.next();
    pull.downloading(250);
    expect((await next).value).toMatchObject({ progress: 0.25 });
    pull.retrying("the connection was cut", 1000);
    expect((await iterator.next()).value).toMatchObject({
      progress: 0.25,
      downloadedBytes: 250,
      note: "the connection was cut; trying again in 1 s",
    });
    pull.fail();
    await expect(iterator.next()).rejects.toMatchObject({ code: "checksum_mismatch" });
  });

  test("yields few steps, however often the download reports", async () => {
    let report = unheard;
    const outcome = Promise.withResolvers<PullResult>();
    const steps = new PullSteps(
      (onProgress) => {
        report = onProgress;
        return outcome.promise;
      },
      () => 0,
    );
    const all = collect(steps);
    for (let bytes = 0; bytes < 1000; bytes += 1) {
      report({ status: "downloading", downloadedBytes: bytes, totalBytes: 1000 });
      await Promise.resolve();
    }
    outcome.resolve(result);
    expect((await all).length).toBeLessThan(6);
  });
});

const RESULT: QuantizedModel = {
  model: fakeModel(),
  sourceBytes: 400,
  sizeBytes: 100,
  bitsPerWeight: 8,
  fallbackTensors: 0,
};

function progress(completedBytes: number): QuantizeProgress {
  return { from: "F16", to: "Q8_0", completedBytes, totalBytes: 100 };
}

describe("QuantizeSteps", () => {
  test("ends with all bytes and the result, however quick it is", async () => {
    const steps = new QuantizeSteps(async (report) => {
      for (const bytes of [1, 50, 100]) report(progress(bytes));
      return RESULT;
    });
    await steps.started();
    const seen = await Array.fromAsync(steps);
    expect(seen.at(-2)).toMatchObject({ status: "quantizing", completedBytes: 100 });
    expect(seen.at(-1)).toEqual({ status: "success", ...RESULT });
  });

  test("fails before its first step if the work cannot begin", async () => {
    const steps = new QuantizeSteps(async () => await Promise.reject(new Error("no")));
    await expect(steps.started()).rejects.toThrow("no");
  });

  test("yields at most ten steps per second", async () => {
    let now = 0;
    const work = Promise.withResolvers<QuantizedModel>();
    const reports: ((progress: QuantizeProgress) => void)[] = [];
    const steps = new QuantizeSteps(
      (report) => {
        reports.push(report);
        return work.promise;
      },
      () => now,
    );
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const step of steps) seen.push(step);
    })();
    for (let bytes = 1; bytes <= 100; bytes++) {
      reports[0]?.(progress(bytes));
      now += 10;
      await setImmediate();
    }
    work.resolve(RESULT);
    await reading;
    expect(seen.length).toBeGreaterThan(8);
    expect(seen.length).toBeLessThan(14);
  });
});
