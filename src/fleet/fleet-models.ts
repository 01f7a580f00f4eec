import type { FleetMachine, FleetReport } from "../api/management/fleet-routes.ts";
import { ServiceError } from "../errors/service-error.ts";
import { type Model, NO_SETTINGS } from "../models/model.ts";
import type { Models } from "../models/models.ts";
import {
  type Heartbeat,
  type MemberInfo,
  type MemberModel,
  findIn,
  type CandidateMachine,
} from "./members.ts";

/** The models of this machine, with those that only other machines have in lists and descriptions. */
export function withFleetModels(
  local: Models,
  others: () => readonly CandidateMachine[],
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
  /** What this machine does with its own models. @throws ServiceError that says where a model is that only others have */
  const here = async <Result>(name: string | undefined, action: () => Promise<Result>): Promise<Result> => {
    try {
      return await action();
    } catch (error) {
      const isUnknown = error instanceof ServiceError && error.code === "model_not_found";
      const found = isUnknown && name ? describe(findIn(others(), name)?.model, others()) : undefined;
      throw found ? managedElsewhere(found, error) : error;
    }
  };
  const managing: Pick<
    Models,
    "load" | "delete" | "unload" | "copy" | "setDefault" | "scaleAdapters" | "acquire" | "slots"
  > = {
    load: async (options, signal) => await here(options.alias, async () => await local.load(options, signal)),
    delete: async (name) => await here(name, async () => await local.delete(name)),
    unload: async (name, options) => await here(name, async () => await local.unload(name, options)),
    copy: async (source, target) => await here(source, async () => await local.copy(source, target)),
    setDefault: async (name) => await here(name, async () => await local.setDefault(name)),
    scaleAdapters: async (name, scales) =>
      await here(name, async () => await local.scaleAdapters(name, scales)),
    acquire: async (name, signal, residency) =>
      await here(name, async () => await local.acquire(name, signal, residency)),
    slots: {
      list: async (name, signal) => await here(name, async () => await local.slots.list(name, signal)),
      save: async (name, wanted, signal) =>
        await here(name, async () => await local.slots.save(name, wanted, signal)),
      restore: async (name, wanted, signal) =>
        await here(name, async () => await local.slots.restore(name, wanted, signal)),
      erase: async (name, slot, signal) =>
        await here(name, async () => await local.slots.erase(name, slot, signal)),
      delete: async (name, prompt) => await here(name, async () => await local.slots.delete(name, prompt)),
    },
  };
  const fleetwide: Partial<Models> = { list, get, modelfile, ...managing };
  // All else is this machine's: its methods belong to the object behind it.
  return new Proxy(local, {
    get(target, key) {
      if (Object.hasOwn(fleetwide, key)) return Reflect.get(fleetwide, key);
      const member: unknown = Reflect.get(target, key, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

function managedElsewhere({ alias, source }: Model, cause: unknown): ServiceError {
  const machines = source.kind === "fleet" ? source.machines.join(", ") : "";
  return new ServiceError(
    "model_not_found",
    `The model "${alias}" is on other machines of the fleet (${machines}), each of which manages its own: do this there.`,
    { param: "model", cause },
  );
}

function describe(model: MemberModel | undefined, others: readonly CandidateMachine[]): Model | undefined {
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

/** What a daemon's routes tell of the fleet: this machine first, then the others by name. */
export function fleetReport(
  { isConnected, problem }: { readonly isConnected: boolean; readonly problem?: string | undefined },
  self: { readonly card: MemberInfo; readonly beat: Heartbeat },
  others: readonly { readonly card: MemberInfo; readonly beat: Heartbeat }[],
): FleetReport {
  const sorted = others.toSorted((a, b) => a.card.name.localeCompare(b.card.name));
  return {
    name: self.card.name,
    isConnected,
    problem,
    machines: [machine(self, true), ...sorted.map((each) => machine(each, false))],
  };
}

function machine({ card, beat }: { card: MemberInfo; beat: Heartbeat }, isSelf: boolean): FleetMachine {
  const loaded = new Map(beat.loaded.map((each) => [each.alias, each]));
  const speeds = new Map(beat.speeds.map((each) => [each.alias, each]));
  const { id, name, version, engine, processor, gpus, memory } = card;
  return {
    id,
    name,
    isSelf,
    state: beat.state === "ready" ? "ready" : "draining",
    version,
    engine,
    processor,
    gpus,
    memory: { ...memory, used: beat.memoryUsed },
    running: beat.loaded.reduce((sum, each) => sum + each.running, 0),
    waiting: beat.loaded.reduce((sum, each) => sum + each.waiting, 0),
    models: card.models.map((model) => ({
      ...model,
      sizeBytes: model.bytes,
      load: loaded.get(model.alias),
      speed: speeds.get(model.alias),
    })),
  };
}
