import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type BeginOptions, Dispatch, type DispatchOptions } from "../../../src/fleet/dispatch.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { beat, card, cardModel } from "../../support/fleet-wire.ts";

const model = cardModel("tiny");

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function dispatchAlone(
  unreachable?: ServiceError,
  connection = { isConnected: true },
  expected?: ServiceError,
): Dispatch {
  const self = { card: card("desk"), beat: beat("desk"), model: () => undefined };
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
    unreachable: () => unreachable,
    missing: () => unreachable ?? expected,
  };
  const models: DispatchOptions["models"] = {
    defaultAlias: undefined,
    get: async () => {
      throw new ServiceError("model_not_found", "none");
    },
  };
  return new Dispatch({ self, presence, models, queueSize: 8, onWaiting: () => undefined });
}

/** Asks for an answer; tells what it has failed with by now. */
function failureOf(dispatch: Dispatch, continues?: BeginOptions["continues"]): () => unknown {
  const { signal } = new AbortController();
  let failure: unknown;
  const begun = dispatch.begin({ ...model, adapter: undefined }, async () => ({}), {
    marks: [],
    signal,
    continues,
  });
  void begun.catch((error: unknown) => {
    failure = error;
  });
  return () => failure;
}

test("an answer that no machine goes on with has failed, after half a minute", async () => {
  const dispatch = dispatchAlone();
  const failure = failureOf(dispatch, { engine: "e", hasTold: true });
  await vi.advanceTimersByTimeAsync(31_000);
  dispatch.close();
  expect(failure()).toMatchObject({ code: "inference_failed" });
  expect(failure()).toHaveProperty("message", expect.stringContaining("could go on in time"));
});

test("a model that nobody has any more is not there", async () => {
  const dispatch = dispatchAlone();
  const { signal } = new AbortController();
  const begun = dispatch.begin({ ...model, adapter: undefined }, async () => ({}), { marks: [], signal });
  await expect(begun).rejects.toMatchObject({ code: "model_not_found" });
  dispatch.close();
});

test("a model whose machine is expected back may be asked for again at once", async () => {
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
  ["an answer that has told its client nothing", { engine: "e", hasTold: false }],
])("%s may be sent again when the NATS server is not back within three seconds", async (_what, continues) => {
  const dispatch = dispatchAlone(UNREACHABLE, { isConnected: false });
  const failure = failureOf(dispatch, continues);
  await vi.advanceTimersByTimeAsync(2700);
  expect(failure()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(600);
  expect(failure()).toMatchObject({ code: "fleet_unreachable", status: 503, retryable: true });
  dispatch.close();
});

test("requests that wait behind each other may all be sent again after three seconds", async () => {
  const dispatch = dispatchAlone(UNREACHABLE, { isConnected: false });
  const failures = Array.from({ length: 5 }, () => failureOf(dispatch));
  await vi.advanceTimersByTimeAsync(3500);
  expect(failures.map((failure) => failure())).toEqual(Array.from({ length: 5 }, () => UNREACHABLE));
  dispatch.close();
});

test("an answer that has begun for its client waits for the NATS server for half a minute", async () => {
  const dispatch = dispatchAlone(UNREACHABLE, { isConnected: false });
  const failure = failureOf(dispatch, { engine: "e", hasTold: true });
  await vi.advanceTimersByTimeAsync(29_000);
  expect(failure()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(2000);
  expect(failure()).toMatchObject({ code: "fleet_unreachable" });
  dispatch.close();
});

test("an answer that has told its client nothing waits for its machines when the NATS server is back in time", async () => {
  const connection = { isConnected: false };
  const dispatch = dispatchAlone(UNREACHABLE, connection);
  const failure = failureOf(dispatch, { engine: "e", hasTold: false });
  await vi.advanceTimersByTimeAsync(2700);
  connection.isConnected = true;
  await vi.advanceTimersByTimeAsync(10_000);
  expect(failure()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(failure()).toMatchObject({ code: "fleet_unreachable" });
  dispatch.close();
});
