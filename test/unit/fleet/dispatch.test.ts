import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Dispatch, type DispatchOptions } from "../../../src/fleet/dispatch.ts";
import { ServiceError } from "../../../src/errors/service-error.ts";
import { beat, card, cardModel } from "../../support/fleet-wire.ts";

const model = cardModel("tiny");

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function dispatchAlone(missing?: ServiceError): Dispatch {
  const self = { card: card("desk"), beat: beat("desk"), model: () => undefined };
  const presence: DispatchOptions["presence"] = {
    machines: [],
    get: () => undefined,
    onChange: () => () => true,
    missing: () => missing,
  };
  const models: DispatchOptions["models"] = {
    defaultAlias: undefined,
    get: async () => {
      throw new ServiceError("model_not_found", "none");
    },
  };
  return new Dispatch({ self, presence, models, queueSize: 8, onWaiting: () => undefined });
}

test("an answer that no machine goes on with has failed, after half a minute", async () => {
  const dispatch = dispatchAlone();
  const { signal } = new AbortController();
  const begun = dispatch.begin({ ...model, adapter: undefined }, async () => ({}), {
    marks: [],
    signal,
    continues: { engine: "e" },
  });
  const failure = begun.catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(31_000);
  const error = await failure;
  dispatch.close();
  expect(error).toMatchObject({ code: "inference_failed" });
  expect(error).toHaveProperty("message", expect.stringContaining("could go on in time"));
});

test("a model that nobody has any more is not there", async () => {
  const dispatch = dispatchAlone();
  const { signal } = new AbortController();
  const begun = dispatch.begin({ ...model, adapter: undefined }, async () => ({}), { marks: [], signal });
  await expect(begun).rejects.toMatchObject({ code: "model_not_found" });
  dispatch.close();
});

test("a request that waits for machines that cannot be reached any more may be sent again", async () => {
  const dispatch = dispatchAlone(new ServiceError("fleet_unreachable", "no NATS server"));
  const { signal } = new AbortController();
  const begun = dispatch.begin({ ...model, adapter: undefined }, async () => ({}), { marks: [], signal });
  await expect(begun).rejects.toMatchObject({ code: "fleet_unreachable", status: 503, retryable: true });
  dispatch.close();
});
