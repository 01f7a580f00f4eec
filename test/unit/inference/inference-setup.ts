import { configSchema, type ConfigInput } from "../../../src/config/schema.ts";
import { createInference } from "../../../src/inference/create-inference.ts";
import type { Inference, InferenceRequest } from "../../../src/inference/inference.ts";
import type { Model } from "../../../src/models/model.ts";
import { aborted, FakeEngine } from "../../support/fake-engine.ts";
import { fakeModel, FakeModels } from "../../support/fake-models.ts";
import { FakeMetrics } from "../../support/fake-metrics.ts";

/** A signal that is never aborted. */
export const never = new AbortController().signal;

export const REQUEST: InferenceRequest = {
  maxTokens: 16,
  endpoint: "generate",
  input: { kind: "prompt", prompt: "Once" },
  sampling: {},
  format: { type: "text" },
  defaults: { sampling: {} },
};

/** Creates an inference service on fakes that record their calls. */
interface Setup {
  engine: FakeEngine;
  models: FakeModels;
  metrics: FakeMetrics;
  inference: Inference;
}

export function setup(
  options: {
    slots?: number;
    model?: Model;
    config?: ConfigInput;
    now?: () => number;
    isBackground?: () => boolean;
  } = {},
): Setup {
  const engine = new FakeEngine({ slots: options.slots ?? 2 });
  const models = new FakeModels([options.model ?? fakeModel()], engine);
  const metrics = new FakeMetrics();
  const config = configSchema.parse(options.config ?? {});
  const { isBackground } = options;
  const now = options.now && { now: options.now };
  const inference = createInference({ models, metrics, config, isLowPriority: isBackground, ...now });
  return { engine, models, metrics, inference };
}

/** Counts the resources that requests have not released. */
export function leftOver({ engine, models, metrics, inference }: Setup) {
  return {
    inFlight: engine.inFlight,
    leases: models.leases,
    active: inference.activeRequests,
    counted: metrics.totals.activeRequests,
    waiting: metrics.waiting,
  };
}

/** Expected result of {@link leftOver} when all requests have ended. */
export const NOTHING = { inFlight: 0, leases: 0, active: 0, counted: 0, waiting: 0 };

/** Generation that begins and never ends before its signal aborts. */
export async function* endless(_request: unknown, signal: AbortSignal): AsyncGenerator<{ type: "start" }> {
  yield { type: "start" };
  await aborted(signal);
}
