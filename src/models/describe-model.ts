import { type LoadSettings, loadSettingsSchema } from "../config/load-settings.ts";
import type { ContextChoice } from "./loading/choose-settings.ts";
import type { LoadedModel } from "./loading/loaded-model.ts";
import type {
  Capabilities,
  GgufSummary,
  Media,
  Model,
  ModelSettings,
  ModelState,
  Speculation,
} from "./model.ts";
import type { ModelRecord } from "./registry/model-record.ts";

/** Templates that support tools test this variable, which is what callers pass. */
const TOOLS_VARIABLE = /\btools\b/;
/** How templates of reasoning models mark, keep or toggle reasoning. */
const THINKING_MARKS = /enable_thinking|reasoning_content|<think>|<\/think>|\[THINK\]|<\|channel\|>analysis/;

interface ModelCircumstances {
  /** The loaded model, if it is loaded. */
  readonly loaded: LoadedModel | undefined;
  readonly isDefault: boolean;
  readonly isPulling: boolean;
  /** What is said of how to load it. */
  readonly likelySettings: (record: ModelRecord) => LoadSettings;
  /** How its requests would guess tokens. */
  readonly likelySpeculation: (record: ModelRecord) => Speculation | undefined;
  /** The context that it would be loaded with. */
  readonly likelyContext: (record: ModelRecord) => ContextChoice;
  readonly memoryBytes: number | undefined;
}

/** Describes a model to the layers above: what is on disk, and what is in memory. */
export function describeModel(found: ModelRecord, circumstances: ModelCircumstances): Model {
  const { loaded, isDefault, memoryBytes } = circumstances;
  // A loaded model is described by the record it was loaded from; the disk may have changed since.
  const record = loaded?.plan.record ?? found;
  const spec = loaded?.plan.spec;
  const info = loaded?.engine?.info;
  const context = loaded
    ? { contextSize: loaded.plan.spec.contextSize, source: loaded.plan.contextSource }
    : circumstances.likelyContext(record);
  return {
    alias: record.alias,
    source: record.source,
    state: stateOf(circumstances),
    path: record.files[0].path,
    files: record.files.map(({ path }) => path),
    projector: record.projector?.path,
    ...(record.draft && { draft: record.draft.path }),
    adapters: record.adapters.map(({ file, scale, name }, at) => ({
      path: file.path,
      scale: loaded?.adapterScales?.[at] ?? scale,
      name,
    })),
    gguf: record.gguf,
    capabilities: detectCapabilities(record.gguf, record.projector?.media, record.settings),
    settings: record.settings,
    contextSize: info?.contextSize ?? context.contextSize,
    loadSettings: spec ? loadSettingsSchema.parse(spec) : circumstances.likelySettings(record),
    speculation: loaded ? loaded.plan.speculation : circumstances.likelySpeculation(record),
    contextSource: context.source,
    gpuLayers: info?.gpuLayers ?? spec?.gpuLayers ?? record.settings.gpuLayers ?? 0,
    isDefault,
    activeRequests: loaded?.users ?? 0,
    modifiedAt: record.modifiedAt,
    memoryBytes,
    expiresAt: loaded?.expiresAt,
    gpuMemoryBytes: loaded?.engine && loaded.needs.gpuBytes,
    slots: loaded?.engine?.spec.slots,
    lastUsedAt: loaded?.engine && loaded.lastUsed,
  };
}

function stateOf({ loaded, isPulling }: ModelCircumstances): ModelState {
  if (loaded && loaded.state !== "gone") return loaded.state;
  return isPulling ? "downloading" : "available";
}

/**
 * What a model can do, by its chat template (or the one in its settings) and its projector. Capabilities stated in its
 * settings take precedence.
 */
export function detectCapabilities(
  gguf: Pick<GgufSummary, "purpose" | "chatTemplate">,
  media: Media | undefined,
  settings: Pick<ModelSettings, "template" | "thinking" | "toolFormat" | "capabilities">,
): Capabilities {
  const generates = gguf.purpose === "generate";
  const template = generates ? (settings.template ?? gguf.chatTemplate ?? "") : "";
  return {
    vision: generates && media?.image === true,
    audio: generates && media?.audio === true,
    tools: generates && (settings.toolFormat !== undefined || TOOLS_VARIABLE.test(template)),
    thinking: generates && (settings.thinking?.enabled ?? THINKING_MARKS.test(template)),
    json: generates,
    ...settings.capabilities,
  };
}
