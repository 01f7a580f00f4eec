import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { FailureLog, LoadEnding, startLimitMs } from "../../../../src/engine/core/load-watch.ts";
import type { ServiceError } from "../../../../src/errors/service-error.ts";

const RESERVED = "sched_reserve: reserve took 18.55 ms, sched copies = 1";

function watch(bytes = 0): { ending: LoadEnding; errors: ServiceError[] } {
  const errors: ServiceError[] = [];
  return { ending: new LoadEnding([{ size: bytes }], false, (error) => errors.push(error)), errors };
}

describe("action limits", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  test("a load that says nothing more, once only its template is left, is ended", () => {
    const { ending, errors } = watch();
    ending.add(RESERVED);
    vi.advanceTimersByTime(60_000);
    expect(errors).toMatchObject([{ code: "invalid_template" }]);
  });

  test("a load may read its weights for as long as it takes", () => {
    const { ending, errors } = watch();
    ending.add("load_tensors: loading model tensors");
    vi.advanceTimersByTime(600_000);
    expect(errors).toEqual([]);
  });

  test("a large model has longer for the trials at the end of its load", () => {
    const { ending, errors } = watch(8 * 1024 ** 3);
    ending.add(RESERVED);
    vi.advanceTimersByTime(60_000);
    expect(errors).toEqual([]);
  });

  test("a load that goes on saying something is not ended", () => {
    const { ending, errors } = watch();
    for (let line = 0; line < 10; line += 1) {
      ending.add(line === 0 ? RESERVED : "a trial");
      vi.advanceTimersByTime(14_000);
    }
    expect(errors).toEqual([]);
  });

  test("a load that has ended is watched no longer", () => {
    const { ending, errors } = watch();
    ending.add(RESERVED);
    ending.over();
    ending.add(RESERVED);
    vi.advanceTimersByTime(600_000);
    expect(errors).toEqual([]);
  });

  test("a longer request may take longer to be taken on", () => {
    expect(startLimitMs("x".repeat(2_000_000))).toBe(3 * startLimitMs(""));
  });
});

test("a lost GPU is the reason; that there is none is not", () => {
  const log = new FailureLog();
  log.add("info", "ggml_webgpu: Failed to get an adapter: WebGPU not available on this browser");
  log.add("error", "llama_model_load: error loading model");
  expect(log.reason).toBe("llama_model_load: error loading model");
  log.add("info", "ggml-webgpu.cpp:499: ggml_webgpu: Queue wait timed out after 30000 ms");
  expect(log.reason).toMatch(/^ggml-webgpu.cpp:499: ggml_webgpu: Queue wait timed out/);
});
