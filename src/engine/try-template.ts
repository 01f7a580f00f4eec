import { createHash } from "node:crypto";
import { ServiceError } from "../errors/service-error.ts";
import type { StartEngine } from "./engine.ts";
import type { EngineSpec } from "./protocol/engine-spec.ts";

/** Tests a chat template in a separate engine. Rejects with invalid_template. */
export type TryTemplate = (template: string) => Promise<void>;

/** Longest chat template in characters; published ones have tens of thousands at most. */
const MAX_TEMPLATE_LENGTH = 256 * 1024;

/** Heap of an engine that only tests a template, with a small model. */
const TRIAL_HEAP_BYTES = 256 * 1024 ** 2;

/** Valid templates that are remembered. */
const MAX_VALID_HASHES = 100;

/** @throws ServiceError invalid_template when the template is too long */
export function checkTemplateLength(template: string | undefined): void {
  if (template === undefined || template.length <= MAX_TEMPLATE_LENGTH) return;
  throw new ServiceError(
    "invalid_template",
    `The model's chat template has ${template.length} characters; it may have at most ${MAX_TEMPLATE_LENGTH}.`,
  );
}

/**
 * Creates the function that tests templates, one at a time, each in a separate engine: when llama.cpp loads a model, it
 * renders sample chats with the template.
 * @param modelFile a small model; if it cannot be loaded for another reason, the template counts as valid
 */
export function createTemplateTrial(start: StartEngine, modelFile: string): TryTemplate {
  const validHashes = new Set<string>();
  let last: Promise<void> = Promise.resolve();
  return async (template) => {
    checkTemplateLength(template);
    const hash = createHash("sha256").update(template).digest("base64");
    if (validHashes.has(hash)) return;
    const trial = last.then(async () => await loadWithTemplate(start, modelFile, template));
    last = trial.catch(() => undefined);
    await trial;
    if (validHashes.size >= MAX_VALID_HASHES) validHashes.clear();
    validHashes.add(hash);
  };
}

async function loadWithTemplate(start: StartEngine, modelFile: string, chatTemplate: string): Promise<void> {
  const spec: EngineSpec = {
    modelFiles: [modelFile],
    adapters: [],
    purpose: "generate",
    contextSize: 256,
    sharedContext: true,
    gpuLayers: 0,
    slots: 1,
    threads: 1,
    batchSize: 16,
    flashAttention: "auto",
    chatTemplate,
    contextShift: false,
  };
  try {
    const engine = await start(spec, { heapLimit: () => TRIAL_HEAP_BYTES });
    await engine.close();
  } catch (error) {
    // Other errors say nothing about the template and occur again when the model is loaded.
    if (ServiceError.from(error).code === "invalid_template") throw error;
  }
}
