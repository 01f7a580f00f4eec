import type { LoadedModel } from "./loading/loaded-model.ts";
import type { Capabilities, GgufSummary, Model, ModelSettings, ModelState } from "./model.ts";
import type { ModelRecord } from "./registry/model-record.ts";

/** Templates that can present tools test a variable of this name: it is what callers of the template pass. */
const TOOLS_VARIABLE = /\btools\b/;
/** How templates of reasoning models mark, keep or switch the reasoning. */
const THINKING_MARKS = /enable_thinking|reasoning_content|<think>|<\/think>|\[THINK\]|<\|channel\|>analysis/;

export interface ModelCircumstances {
  /** What is in memory of it. */
  readonly loaded: LoadedModel | undefined;
  readonly isDefault: boolean;
  readonly isPulling: boolean;
  /** Tokens of context that loading it would give. */
  readonly contextSize: (record: ModelRecord) => number;
  readonly memoryBytes: number | undefined;
}

/** Puts together what the layers above see: what is on disk, and what is in memory of it. */
export function describeModel(found: ModelRecord, circumstances: ModelCircumstances): Model {
  const { loaded, isDefault, contextSize, memoryBytes } = circumstances;
  // What runs was made from the record of its load, which the disk may have left behind since.
  const record = loaded?.plan.record ?? found;
  const spec = loaded?.plan.spec;
  const info = loaded?.engine?.info;
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
    contextSize: info?.contextSize ?? spec?.contextSize ?? contextSize(record),
    gpuLayers: info?.gpuLayers ?? spec?.gpuLayers ?? record.settings.gpuLayers ?? 0,
    isDefault,
    activeRequests: loaded?.users ?? 0,
    modifiedAt: record.modifiedAt,
    memoryBytes,
    expiresAt: loaded?.expiresAt,
  };
}

function stateOf({ loaded, isPulling }: ModelCircumstances): ModelState {
  if (loaded && loaded.state !== "gone") return loaded.state;
  return isPulling ? "downloading" : "available";
}

/**
 * What a model can do: from its chat template (the one of its settings, when they bring one), its projector and,
 * above all, what its settings say outright.
 */
export function detectCapabilities(
  gguf: Pick<GgufSummary, "purpose" | "chatTemplate">,
  hasProjector: boolean,
  settings: Pick<ModelSettings, "template" | "thinking" | "toolFormat" | "capabilities">,
): Capabilities {
  const generates = gguf.purpose === "generate";
  const template = generates ? (settings.template ?? gguf.chatTemplate ?? "") : "";
  return {
    vision: generates && hasProjector,
    tools: generates && (settings.toolFormat !== undefined || TOOLS_VARIABLE.test(template)),
    thinking: generates && (settings.thinking?.enabled ?? THINKING_MARKS.test(template)),
    json: generates,
    ...settings.capabilities,
  };
}
