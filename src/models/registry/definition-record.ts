import type { ModelSettings, ModelSource } from "../model.ts";
import type { ModelDefinition } from "../modelfile/model-definition.ts";
import type { ModelFile } from "../paths/model-file-path.ts";
import type { ModelRecord } from "./model-record.ts";

export interface DefinitionParts {
  readonly alias: string;
  readonly source: ModelSource;
  readonly definition: ModelDefinition;
  /** What its FROM names. */
  readonly base: ModelRecord;
  /** Folders that adapters and projectors must lie in; none: anywhere. */
  readonly within: readonly string[];
}

/** The record that a Modelfile makes of its base: what it does not say, the base says. */
export function definitionRecord({ alias, source, definition, base, within }: DefinitionParts): ModelRecord {
  const own = (path: string): ModelFile => ({ path, within });
  return {
    ...base,
    alias,
    source,
    projector: definition.projector === undefined ? base.projector : own(definition.projector),
    adapters: [
      ...base.adapters,
      ...definition.adapters.map(({ path, scale }) => ({ file: own(path), scale })),
    ],
    settings: mergeSettings(base.settings, definition.settings),
    digest: definition.digest ?? base.digest,
  };
}

function mergeSettings(base: ModelSettings, own: ModelSettings): ModelSettings {
  return {
    system: own.system ?? base.system,
    template: own.template ?? base.template,
    sampling: { ...base.sampling, ...own.sampling },
    maxTokens: own.maxTokens ?? base.maxTokens,
    stop: own.stop.length > 0 ? own.stop : base.stop,
    contextSize: own.contextSize ?? base.contextSize,
    gpuLayers: own.gpuLayers ?? base.gpuLayers,
    flashAttention: own.flashAttention ?? base.flashAttention,
    thinking: own.thinking ?? base.thinking,
    toolFormat: own.toolFormat ?? base.toolFormat,
    capabilities: { ...base.capabilities, ...own.capabilities },
  };
}
