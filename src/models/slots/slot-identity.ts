import { createHash } from "node:crypto";
import type { Kernels } from "../../engine/prepare-engine.ts";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import { ServiceError } from "../../errors/service-error.ts";
import { IMAGE_SHA256 } from "../../../wasm/engine-image.ts";
import { STOCK_SHA256 } from "../../../wasm/llama-cpp-build.ts";
import type { SavedHeader } from "./saved-header.ts";

/** What must be the same for a state to mean the same. */
export type SlotIdentity = Pick<SavedHeader, "model" | "engine" | "settings">;

/** The files that decide what a model computes of a text: with other adapters it is another model. */
export function computingFiles({ modelFiles, adapters }: EngineSpec): readonly string[] {
  return [...modelFiles, ...adapters.map(({ path }) => path)];
}

/** @param model SHA-256 of the {@link computingFiles} */
export function slotIdentity(model: string, kernels: Kernels, spec: EngineSpec): SlotIdentity {
  return {
    model,
    engine: kernels === "stock" ? STOCK_SHA256 : IMAGE_SHA256,
    settings: createHash("sha256").update(settingsText(spec)).digest("hex"),
  };
}

/** All of an engine's settings but those that leave what it computes of a text as it is; new ones count until they are listed. */
function settingsText(spec: EngineSpec): string {
  const {
    modelFiles: _modelFiles,
    projectorFile: _projectorFile,
    hearsAudio: _hearsAudio,
    adapters: _adapters,
    contextSize: _contextSize,
    sharedContext: _sharedContext,
    gpuLayers: _gpuLayers,
    gpu: _gpu,
    slots: _slots,
    promptCacheBytes: _promptCacheBytes,
    guessTokens: _guessTokens,
    threads: _threads,
    batchSize: _batchSize,
    chatTemplate: _chatTemplate,
    contextShift: _contextShift,
    ...settings
  } = spec;
  const sorted = Object.entries(settings).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(sorted);
}

export function isSame(saved: SlotIdentity, now: SlotIdentity): boolean {
  return saved.model === now.model && saved.engine === now.engine && saved.settings === now.settings;
}

/** @throws ServiceError slot_state_mismatch when a saved prompt is not one of this model as it is loaded */
export function checkIdentity(name: string, saved: SavedHeader, now: SlotIdentity): void {
  if (isSame(saved, now)) return;
  const what =
    saved.model !== now.model
      ? "of another model file, or of other adapters"
      : saved.engine !== now.engine
        ? "of another version of the engine"
        : "of other load settings";
  throw new ServiceError(
    "slot_state_mismatch",
    `The saved prompt ${JSON.stringify(name)} is ${what}, so the model cannot use it; delete it and save again.`,
  );
}
