import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FailureLog, LoadEndWatchdog, acceptLimitMs } from "../../../../src/engine/core/load-watch.ts";
import type { ServiceError } from "../../../../src/errors/service-error.ts";

const RESERVED = "sched_reserve: reserve took 18.55 ms, sched copies = 1";

function watch(bytes = 0): { ending: LoadEndWatchdog; errors: ServiceError[] } {
  const errors: ServiceError[] = [];
  return { ending: new LoadEndWatchdog(bytes, false, (error) => errors.push(error)), errors };
}

describe("the time limits of llama.cpp", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test("end a load that logs nothing more while it parses its chat template", () => {
    const { ending, errors } = watch();
    ending.add(RESERVED);
    vi.advanceTimersByTime(60_000);
    expect(errors).toMatchObject([{ code: "invalid_template" }]);
  });

  test("do not apply while a load reads weights", () => {
    const { ending, errors } = watch();
    ending.add("load_tensors: loading model tensors");
    vi.advanceTimersByTime(600_000);
    expect(errors).toEqual([]);
  });

  test("allow a large model more time for its trial batches", () => {
    const { ending, errors } = watch(8 * 1024 ** 3);
    ending.add(RESERVED);
    vi.advanceTimersByTime(60_000);
    expect(errors).toEqual([]);
  });

  test("do not end a load that continues to log", () => {
    const { ending, errors } = watch();
    for (let line = 0; line < 10; line += 1) {
      ending.add(line === 0 ? RESERVED : "a trial");
      vi.advanceTimersByTime(14_000);
    }
    expect(errors).toEqual([]);
  });

  test("do not apply after the end of a load", () => {
    const { ending, errors } = watch();
    ending.add(RESERVED);
    ending.stop();
    ending.add(RESERVED);
    vi.advanceTimersByTime(600_000);
    expect(errors).toEqual([]);
  });

  test("allow a longer request more time to be accepted", () => {
    expect(acceptLimitMs("x".repeat(2_000_000))).toBe(3 * acceptLimitMs(""));
  });
});

test("FailureLog reports a lost GPU first, and ignores that there is no GPU", () => {
  const log = new FailureLog();
  log.add("info", "ggml_webgpu: Failed to get an adapter: WebGPU not available on this browser");
  log.add("error", "llama_model_load: error loading model");
  expect(log.reason).toBe("llama_model_load: error loading model");
  log.add("info", "ggml-webgpu.cpp:499: ggml_webgpu: Queue wait timed out after 30000 ms");
  expect(log.reason).toMatch(/^ggml-webgpu.cpp:499: ggml_webgpu: Queue wait timed out/);
});
