import type { FleetReport } from "../api/management/management-services.ts";
import { ServiceError } from "../errors/service-error.ts";
import { type Model, NO_SETTINGS } from "../models/model.ts";
import { isRecord } from "../json/json-values.ts";
import type { Models } from "../models/models.ts";
import { findModel, type Member, type MemberModel } from "./members.ts";

/** Returns the models of this machine, with those of other machines added to lists and descriptions. */
export function withFleetModels(
  local: Models,
  others: () => readonly Member[],
  missing: (name: string) => ServiceError | undefined,
): Models {
  const list: Models["list"] = async () => {
    const localModels = await local.list();
    const names = new Set(localModels.map(({ alias }) => alias));
    const remoteModels = others().flatMap(({ info }) => info.models.filter(({ alias }) => !names.has(alias)));
    const byName = Map.groupBy(remoteModels, ({ alias }) => alias);
    return [...localModels, ...[...byName].map(([, [model]]) => toModel(model, others()))].filter(
      (model) => model !== undefined,
    );
  };
  const get: Models["get"] = async (name) => {
    try {
      return await local.get(name);
    } catch (error) {
      const isUnknown = error instanceof ServiceError && error.code === "model_not_found";
      const found = isUnknown ? toModel(findModel(others(), name)?.model, others()) : undefined;
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
  /** Returns an object whose `methods` name the machines in their error if only others have the model of their first argument. */
  const managed = <Service extends object>(
    service: Service,
    methods: readonly (keyof Service)[],
    replaced: Partial<Service> = {},
  ): Service =>
    new Proxy(service, {
      get(target, key) {
        if (Object.hasOwn(replaced, key)) return Reflect.get(replaced, key);
        const member: unknown = Reflect.get(target, key, target);
        // Bound to the original object, which has private members.
        const method: unknown = typeof member === "function" ? member.bind(target) : member;
        if (typeof method !== "function" || !methods.some((name) => name === key)) return method;
        return async (...args: unknown[]): Promise<unknown> => {
          try {
            return await Reflect.apply(method, undefined, args);
          } catch (error) {
            const name = isRecord(args[0]) ? args[0].alias : args[0];
            const isUnknown = error instanceof ServiceError && error.code === "model_not_found";
            const model =
              isUnknown && typeof name === "string" ? findModel(others(), name)?.model : undefined;
            const found = toModel(model, others());
            throw found ? remoteModelError(found, error) : error;
          }
        };
      },
    });
  const slots = managed(local.slots, ["list", "save", "restore", "erase", "delete"]);
  return managed(local, ["load", "delete", "unload", "copy", "setDefault", "scaleAdapters", "acquire"], {
    list,
    get,
    modelfile,
    slots,
  });
}

function remoteModelError({ alias, source }: Model, cause: unknown): ServiceError {
  const machines = source.kind === "fleet" ? source.machines.join(", ") : "";
  return new ServiceError(
    "model_not_found",
    `The model "${alias}" is on other machines of the fleet (${machines}), each of which manages its own: do this there.`,
    { param: "model", cause },
  );
}

function toModel(model: MemberModel | undefined, others: readonly Member[]): Model | undefined {
  if (!model) return undefined;
  const having = others.filter(({ info }) => info.models.some(({ alias }) => alias === model.alias));
  const { vision, audio } = model.capabilities;
  return {
    alias: model.alias,
    source: { kind: "fleet", machines: having.map(({ info }) => info.name) },
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
      toolCallTokens: [],
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

interface ConnectionState {
  readonly isConnected: boolean;
  /** Known reason why the NATS server is not reachable. */
  readonly problem?: string | undefined;
  /** Data that machines do not share although the server is reachable, and the reason. */
  readonly sharingProblem?: string | undefined;
}

/** Returns the fleet report of a daemon: this machine first, then the others by name. */
export function fleetReport(
  { isConnected, problem, sharingProblem }: ConnectionState,
  self: Member,
  others: readonly Member[],
): FleetReport {
  const sorted = others.toSorted((a, b) => a.info.name.localeCompare(b.info.name));
  return {
    joined: true,
    connected: isConnected,
    ...(problem !== undefined && { problem }),
    ...(sharingProblem !== undefined && { sharing_problem: sharingProblem }),
    name: self.info.name,
    machines: [machineReport(self, true), ...sorted.map((each) => machineReport(each, false))],
  };
}

function machineReport({ info, heartbeat }: Member, isSelf: boolean): FleetReport["machines"][number] {
  const loaded = new Map(heartbeat.loaded.map((each) => [each.alias, each]));
  const speeds = new Map(heartbeat.speeds.map((each) => [each.alias, each]));
  const { id, name, version, engine, processor, gpus, memory } = info;
  return {
    id,
    name,
    state: heartbeat.state === "ready" ? "ready" : "draining",
    version,
    engine,
    processor,
    running: heartbeat.loaded.reduce((sum, each) => sum + each.running, 0),
    waiting: heartbeat.loaded.reduce((sum, each) => sum + each.waiting, 0),
    self: isSelf,
    gpus: gpus.map((gpu) => ({ name: gpu.name, backend: gpu.backend, memory_bytes: gpu.memory })),
    memory: {
      total_bytes: memory.total,
      models_bytes: memory.models,
      used_bytes: heartbeat.memoryUsed,
    },
    models: info.models.map(({ alias, bytes, files, settings }) => {
      const load = loaded.get(alias);
      const speed = speeds.get(alias);
      return {
        alias,
        loaded: load !== undefined,
        size_bytes: bytes,
        files,
        settings,
        slots: load?.slots,
        running: load?.running,
        waiting: load?.waiting,
        context_size: load?.contextSize,
        gpu_layers: load?.gpuLayers,
        decode_tokens_per_second: speed?.decode,
        prefill_tokens_per_second: speed?.prefill,
      };
    }),
  };
}
