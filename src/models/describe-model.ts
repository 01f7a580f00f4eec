import { loadSettingsSchema } from "../config/load-settings.ts";
import type { LoadPlanner } from "./loading/load-planner.ts";
import type { LoadedModel } from "./loading/loaded-model.ts";
import type { Capabilities, GgufSummary, Media, Model, ModelSettings, ModelState } from "./model.ts";
import type { ModelRecord } from "./registry/model-record.ts";

/** Variable in which chat templates receive the tools; templates without it ignore tools. */
const TOOLS_VARIABLE = /\btools\b/;
/** Texts in chat templates of reasoning models that mark reasoning or turn it on and off. */
const THINKING_MARKERS =
  /enable_thinking|reasoning_content|<think>|<\/think>|\[THINK\]|<\|channel\|>analysis/;

interface ModelRuntime {
  readonly loaded: LoadedModel | undefined;
  readonly isDefault: boolean;
  readonly isPulling: boolean;
  readonly expected: LoadPlanner["expected"];
  readonly memoryBytes: number | undefined;
}

/** Combines a model's files on disk and its state in memory in one snapshot. */
export function describeModel(found: ModelRecord, runtime: ModelRuntime): Model {
  const { loaded, isDefault, memoryBytes } = runtime;
  // The files of a loaded model may have changed on disk since, so its own record counts.
  const record = loaded?.plan.record ?? found;
  const spec = loaded?.plan.spec;
  const info = loaded?.engine?.info;
  const settings = loaded
    ? {
        contextSize: info?.contextSize ?? loaded.plan.spec.contextSize,
        contextSource: loaded.plan.contextSource,
        loadSettings: loadSettingsSchema.parse(spec),
        speculation: loaded.plan.speculation,
      }
    : runtime.expected(record);
  return {
    alias: record.alias,
    source: record.source,
    state: stateOf(runtime),
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
    ...settings,
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

function stateOf({ loaded, isPulling }: ModelRuntime): ModelState {
  if (loaded && loaded.state !== "gone") return loaded.state;
  return isPulling ? "downloading" : "available";
}

/**
 * Detects capabilities from the chat template and the projector's media. A template and capabilities in the model's
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
    thinking: generates && (settings.thinking?.enabled ?? THINKING_MARKERS.test(template)),
    json: generates,
    ...settings.capabilities,
  };
}
