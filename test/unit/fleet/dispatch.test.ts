import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type BeginOptions, Dispatch, type DispatchOptions } from "../../../src/fleet/dispatch.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { heartbeat, memberInfo, memberModel } from "../../support/fleet-wire.ts";

const model = memberModel("tiny");

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function dispatchAlone(
  unreachable?: ServiceError,
  connection = { isConnected: true },
  expected?: ServiceError,
): Dispatch {
  const self = { info: memberInfo("desk"), heartbeat: heartbeat("desk"), model: () => undefined };
  const begunAt = performance.now();
  const presence: DispatchOptions["presence"] = {
    get isConnected() {
      return connection.isConnected;
    },
    get lostMs() {
      return performance.now() - begunAt;
    },
    machines: [],
    get: () => undefined,
    onChange: () => () => true,
    unreachableError: () => unreachable,
    missingModelError: () => unreachable ?? expected,
  };
  const models: DispatchOptions["models"] = {
    defaultAlias: undefined,
    get: async () => {
      throw new ServiceError("model_not_found", "none");
    },
  };
  return new Dispatch({ self, presence, models, queueSize: 8, onWaiting: () => undefined });
}

/** Begins a request; returns a function that returns its error so far. */
function failureOf(dispatch: Dispatch, continues?: BeginOptions["continues"]): () => unknown {
  const { signal } = new AbortController();
  let failure: unknown;
  const begun = dispatch.begin({ ...model, adapter: undefined }, async () => ({}), {
    prefixHashes: [],
    signal,
    continues,
  });
  void begun.catch((error: unknown) => {
    failure = error;
  });
  return () => failure;
}

test("fails an answer that no machine continues within half a minute", async () => {
  const dispatch = dispatchAlone();
  const failure = failureOf(dispatch, { engine: "e", hasOutput: true });
  await vi.advanceTimersByTimeAsync(31_000);
  dispatch.close();
  expect(failure()).toMatchObject({ code: "inference_failed" });
  expect(failure()).toHaveProperty("message", expect.stringContaining("could continue in time"));
});

test("reports a model as missing when no machine has it any more", async () => {
  const dispatch = dispatchAlone();
  const { signal } = new AbortController();
  const begun = dispatch.begin({ ...model, adapter: undefined }, async () => ({}), {
    prefixHashes: [],
    signal,
  });
  await expect(begun).rejects.toMatchObject({ code: "model_not_found" });
  dispatch.close();
});

test("reports a retryable error for a model whose machine is restarting", async () => {
  const expected = new ServiceError("fleet_unreachable", "it restarts");
  const dispatch = dispatchAlone(undefined, undefined, expected);
  const failure = failureOf(dispatch);
  await vi.advanceTimersByTimeAsync(100);
  dispatch.close();
  expect(failure()).toBe(expected);
});

const UNREACHABLE = new ServiceError("fleet_unreachable", "no NATS server");

test.each([
  ["a request", undefined],
  ["an answer without output", { engine: "e", hasOutput: false }],
])(
  "%s fails with a retryable error after three seconds without the NATS server",
  async (_what, continues) => {
    const dispatch = dispatchAlone(UNREACHABLE, { isConnected: false });
    const failure = failureOf(dispatch, continues);
    await vi.advanceTimersByTimeAsync(2700);
    expect(failure()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(600);
    expect(failure()).toMatchObject({ code: "fleet_unreachable", status: 503, retryable: true });
    dispatch.close();
  },
);

test("queued requests all fail with a retryable error after three seconds without the NATS server", async () => {
  const dispatch = dispatchAlone(UNREACHABLE, { isConnected: false });
  const failures = Array.from({ length: 5 }, () => failureOf(dispatch));
  await vi.advanceTimersByTimeAsync(3500);
  expect(failures.map((failure) => failure())).toEqual(Array.from({ length: 5 }, () => UNREACHABLE));
  dispatch.close();
});

test("an answer with output waits for the NATS server for half a minute", async () => {
  const dispatch = dispatchAlone(UNREACHABLE, { isConnected: false });
  const failure = failureOf(dispatch, { engine: "e", hasOutput: true });
  await vi.advanceTimersByTimeAsync(29_000);
  expect(failure()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(2000);
  expect(failure()).toMatchObject({ code: "fleet_unreachable" });
  dispatch.close();
});

test("an answer without output waits for a machine when the NATS server returns in time", async () => {
  const connection = { isConnected: false };
  const dispatch = dispatchAlone(UNREACHABLE, connection);
  const failure = failureOf(dispatch, { engine: "e", hasOutput: false });
  await vi.advanceTimersByTimeAsync(2700);
  connection.isConnected = true;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(failure()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(failure()).toMatchObject({ code: "fleet_unreachable" });
  dispatch.close();
});
