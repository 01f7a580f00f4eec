import { expect, test } from "vitest";
import type { GenerateCall } from "../../../src/fleet/call-schemas.ts";
import { RemoteCalls } from "../../../src/fleet/remote-calls.ts";
import { ServedCalls } from "../../../src/fleet/served-calls.ts";
import { beginRemote, encodeGenerate } from "../../../src/fleet/remote-answers.ts";
import type { Inference, InferenceEvent } from "../../../src/inference/inference.ts";
import { FleetWire, idOf } from "../../support/fleet-wire.ts";

const TOKEN = { id: 7, token: "a", logprob: -1, bytes: [97], top: [] };
const DONE: InferenceEvent = {
  type: "done",
  reason: "stop",
  usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0, reasoningTokens: 0 },
  timings: { promptMs: 1, completionMs: 1 },
  totalMs: 2,
  tokensPerSecond: 1,
};

async function* events(): AsyncGenerator<InferenceEvent, undefined> {
  yield { type: "text-delta", text: "a", soFar: undefined };
  yield DONE;
}

/** Has the first token before the answer has begun for its reader, as the real one. */
const generate: Inference["generate"] = async ({ onTokens, mayWait, isTimed }) => {
  // Where it waits and how long it takes is up to the one who asks.
  expect({ mayWait, isTimed }).toEqual({ mayWait: false, isTimed: false });
  onTokens?.([TOKEN]);
  await new Promise((resolve) => {
    setImmediate(resolve);
  });
  return { model: "tiny", loadMs: 0, sampling: {}, warnings: [], events: events() };
};

test("tokens that are generated before an answer has begun come after its beginning", async () => {
  const wire = new FleetWire();
  // The rest of an inference is not called.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const inference = { generate } as unknown as Inference;
  const served = new ServedCalls({
    connection: wire.connect(),
    selfId: idOf("attic"),
    inference: () => inference,
    followRequest: async (_head, work) => {
      await work();
      return () => ({});
    },
    refusal: () => undefined,
  });
  const calls = new RemoteCalls(wire.connect(), idOf("desk"));
  const request: Omit<GenerateCall, "wantsTokens"> = {
    endpoint: "chat",
    input: { kind: "prompt", prompt: "a" },
    sampling: {},
    format: { type: "text" },
    logprobs: 0,
    defaults: { sampling: {} },
  };
  const seen: unknown[] = [];
  const onTokens = (tokens: readonly unknown[]): void => void seen.push(...tokens);
  const offer = { files: "", settings: "", name: "tiny", needsSlot: true };
  const { signal } = new AbortController();
  const call = calls.open(idOf("attic"), offer, encodeGenerate({ ...request, onTokens }), signal);
  const stream = await beginRemote(call, "tiny", { onTokens });
  const types = [];
  for await (const { type } of stream.events) types.push(type);
  expect(types).toEqual(["text-delta", "done"]);
  expect(seen).toEqual([TOKEN]);
  calls.close();
  served.close();
});
