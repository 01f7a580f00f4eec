import { detectCapabilities } from "./capabilities/detect-capabilities.ts";
import type { EngineSlot } from "./loading/engine-slot.ts";
import type { LoadPlanner } from "./loading/load-planner.ts";
import type { Model, ModelState } from "./model.ts";
import type { ModelRecord } from "./registry/model-record.ts";

export interface ModelCircumstances {
  readonly slot: EngineSlot | undefined;
  readonly isDefault: boolean;
  readonly isPulling: boolean;
  readonly planner: Pick<LoadPlanner, "contextSize">;
  readonly memoryBytes: number | undefined;
}

/** Puts together what the layers above see: what is on disk, and what runs of it. */
export function makeModel(found: ModelRecord, circumstances: ModelCircumstances): Model {
  const { slot, isDefault, planner, memoryBytes } = circumstances;
  // What runs was made from the record of its load, which the disk may have left behind since.
  const record = slot?.request.record ?? found;
  const info = slot?.engine?.info;
  return {
    alias: record.alias,
    source: record.source,
    state: stateOf(circumstances),
    path: record.files[0].path,
    files: record.files.map(({ path }) => path),
    projector: record.projector?.path,
    adapters: record.adapters.map(({ file, scale }) => ({ path: file.path, scale })),
    gguf: record.gguf,
    capabilities: detectCapabilities(record.gguf, record.projector !== undefined, record.settings),
    settings: record.settings,
    contextSize:
      info?.contextSize ?? slot?.request.spec.contextSize ?? planner.contextSize(record, undefined),
    gpuLayers: info?.gpuLayers ?? slot?.request.spec.gpuLayers ?? record.settings.gpuLayers ?? 0,
    isDefault,
    activeRequests: slot?.leases ?? 0,
    modifiedAt: record.modifiedAt,
    memoryBytes,
    expiresAt: slot?.expiresAt,
  };
}

function stateOf({ slot, isPulling }: ModelCircumstances): ModelState {
  if (slot && slot.state !== "gone") return slot.state;
  return isPulling ? "downloading" : "available";
}
