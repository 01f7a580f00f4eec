import { ServiceError } from "../errors/service-error.ts";
import { type Model, type Models, NO_SETTINGS } from "../models/model.ts";
import type { CardModel } from "./card.ts";
import { findIn } from "./dispatch.ts";
import type { PlacedMachine } from "./places.ts";

/** The models of this machine, with those that only other machines have in lists and descriptions. */
export function withFleetModels(
  local: Models,
  others: () => readonly PlacedMachine[],
  missing: (name: string) => ServiceError | undefined,
): Models {
  const list: Models["list"] = async () => {
    const own = await local.list();
    const names = new Set(own.map(({ alias }) => alias));
    const elsewhere = others().flatMap(({ card }) => card.models.filter(({ alias }) => !names.has(alias)));
    const byName = Map.groupBy(elsewhere, ({ alias }) => alias);
    return [...own, ...[...byName].map(([, [model]]) => describe(model, others()))].filter(
      (model) => model !== undefined,
    );
  };
  const get: Models["get"] = async (name) => {
    try {
      return await local.get(name);
    } catch (error) {
      const isUnknown = error instanceof ServiceError && error.code === "model_not_found";
      const found = isUnknown ? describe(findIn(others(), name)?.model, others()) : undefined;
      if (found) return found;
      throw (isUnknown ? missing(name) : undefined) ?? error;
    }
  };
  const modelfile: Models["modelfile"] = async (name) => {
    const { source, alias } = await get(name);
    return source.kind === "fleet"
      ? `# ${alias} is on other machines of the fleet: ${source.machines.join(", ")}\n`
      : await local.modelfile(name);
  };
  // All else is this machine's: its methods belong to the object behind it.
  return new Proxy(local, {
    get(target, key) {
      if (key === "list") return list;
      if (key === "get") return get;
      if (key === "modelfile") return modelfile;
      const member: unknown = Reflect.get(target, key, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

function describe(model: CardModel | undefined, others: readonly PlacedMachine[]): Model | undefined {
  if (!model) return undefined;
  const having = others.filter(({ card }) => card.models.some(({ alias }) => alias === model.alias));
  const { vision, audio } = model.capabilities;
  return {
    alias: model.alias,
    source: { kind: "fleet", machines: having.map(({ card }) => card.name) },
    state: "available",
    path: "",
    files: [],
    projector: undefined,
    adapters: model.adapters.map((name) => ({ path: "", scale: 1, name })),
    gguf: {
      ...model.gguf,
      name: model.gguf.name,
      headCount: 0,
      chatTemplate: undefined,
      infill: undefined,
      callTokens: [],
      kvBytesPerToken: 0,
      weightBytes: { blocks: 0, largestInBlocks: 0, embedding: 0, output: 0 },
      auxiliary: undefined,
      media: { image: vision, audio },
    },
    capabilities: model.capabilities,
    settings: NO_SETTINGS,
    contextSize: model.contextSize,
    loadSettings: {},
    gpuLayers: 0,
    isDefault: false,
    activeRequests: 0,
    modifiedAt: model.modifiedAt,
    memoryBytes: undefined,
    expiresAt: undefined,
  };
}
