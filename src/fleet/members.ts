import { z } from "zod";

/**
 * Messages in which machines describe themselves. Every client of the NATS server may write them, so every text and
 * list has a limit.
 */

/**
 * Version of the protocol: machines with different versions do not work together. Changes with every incompatible
 * message.
 */
export const PROTOCOL = 1;

/** Revision of the member info of a machine that has just started and has not listed its models yet. */
export const INITIAL_REVISION = 0;

/** Maximum bytes of a message with a member info, enough for hundreds of models; longer messages are ignored. */
export const MAX_MEMBER_INFO_BYTES = 256 * 1024;
/** Maximum bytes of a message with a heartbeat. */
export const MAX_HEARTBEAT_BYTES = 64 * 1024;
/** Maximum characters of the name of a model, file, processor or GPU. */
const MAX_TEXT_CHARACTERS = 1024;
/** More models than fit into a message. */
const MAX_MODELS = 10_000;
const MAX_GPUS = 64;
const MAX_ADAPTERS = 16;

const text = z.string().max(MAX_TEXT_CHARACTERS);
const count = z.int().min(0);
const bytes = z.number().min(0);
/** Random id for one run of a daemon. */
export const machineIdSchema = z.string().regex(/^[0-9a-f]{32}$/);
const hash = z.string().regex(/^[0-9a-f]{64}$/);

/** Fields of a GGUF header that lists of models show. */
const ggufSchema = z.object({
  architecture: text,
  name: text.optional(),
  license: text.optional(),
  parameters: bytes,
  vocabSize: count,
  contextLength: count,
  embeddingLength: count,
  blockCount: count,
  quantization: text,
  fileSize: bytes,
  purpose: z.enum(["generate", "embed", "rerank"]),
});

export const memberModelSchema = z.object({
  alias: text,
  /** Name of the model on the hub. */
  spec: text.optional(),
  /** SHA-256 that identifies the content of the model's files; independent of their paths. */
  files: hash,
  /** SHA-256 of the settings that affect answers. */
  settings: hash,
  /** Minimum memory in bytes of the loaded model. */
  bytes,
  gguf: ggufSchema,
  capabilities: z.object({
    vision: z.boolean(),
    audio: z.boolean(),
    tools: z.boolean(),
    thinking: z.boolean(),
    json: z.boolean(),
  }),
  contextSize: count,
  adapters: z.array(text).max(MAX_ADAPTERS),
  modifiedAt: z.number().min(0),
  isDefault: z.boolean(),
});
export type MemberModel = z.infer<typeof memberModelSchema>;

const gpuSchema = z.object({ name: text, backend: text, memory: bytes.optional() });

/** Member info: fields that rarely change. Requested by machines that receive a heartbeat with a new revision. */
export const memberInfoSchema = z.object({
  protocol: z.literal(PROTOCOL),
  id: machineIdSchema,
  revision: count,
  name: text,
  version: text,
  /** SHA-256 of the engine's WebAssembly: equal engines generate equal texts. */
  engine: text,
  processor: z.object({ name: text, system: text, usable: count, cores: count }),
  gpus: z.array(gpuSchema).max(MAX_GPUS),
  /** Memory of the machine, and the part that models may use, in bytes. */
  memory: z.object({ total: bytes, models: bytes }),
  models: z.array(memberModelSchema).max(MAX_MODELS),
});
export type MemberInfo = z.infer<typeof memberInfoSchema>;

const loadedSchema = z.object({
  alias: text,
  slots: count,
  running: count,
  waiting: count,
  contextSize: count,
  gpuLayers: count,
});

const speedSchema = z.object({
  alias: text,
  /** Tokens per second of recent answers and prompts. */
  decode: z.number().min(0),
  prefill: z.number().min(0),
});

/** Heartbeat, sent twice a second by each machine, and once more when it leaves. */
export const heartbeatSchema = z.object({
  protocol: z.int(),
  id: machineIdSchema,
  revision: count,
  state: z.enum(["ready", "draining", "gone"]),
  /** Bytes used by models. */
  memoryUsed: bytes,
  loaded: z.array(loadedSchema).max(MAX_MODELS),
  speeds: z.array(speedSchema).max(MAX_MODELS),
});
export type Heartbeat = z.infer<typeof heartbeatSchema>;

/** Identifies a model across machines: the same files with the same settings. */
export interface ModelKey {
  readonly files: string;
  readonly settings: string;
}

/** Machine with its latest messages. */
export interface Member {
  readonly info: MemberInfo;
  readonly heartbeat: Heartbeat;
}

/** Machine that could run a request. */
export interface Candidate {
  /** Machine id. */
  readonly machine: string;
  /** Configured name or host name. */
  readonly machineName: string;
  readonly isLocal: boolean;
  /** Alias of the model on that machine. */
  readonly name: string;
  readonly isLoaded: boolean;
  /** True if the machine could begin at once, as far as is known. */
  readonly isFree: boolean;
  /** Free slots in the last heartbeat; 1 if the model is not loaded. */
  readonly unusedSlots: number;
  /** Free share of the slots, from 0 to 1. */
  readonly freeShare: number;
  /** Tokens per second; 0 if unknown. */
  readonly speed: number;
  /** SHA-256 of the engine. */
  readonly engine: string;
  /** Processor and system. */
  readonly processor: string;
  /** Undefined if the model is not loaded. */
  readonly gpuLayers: number | undefined;
}

/**
 * Returns the machines that have a model.
 * @param openRequests requests opened by this machine, minus those that ended, since the last heartbeat of a machine
 */
export function candidatesFor(
  key: ModelKey,
  machines: readonly Member[],
  selfId: string,
  openRequests: (machine: string, alias: string) => number,
): Candidate[] {
  return machines.flatMap(({ info, heartbeat }) => {
    const model = info.models.find((each) => isSameModel(each, key));
    if (!model || heartbeat.state !== "ready") return [];
    const { alias } = model;
    const load = heartbeat.loaded.find((each) => each.alias === alias);
    const running = (load?.running ?? 0) + openRequests(info.id, alias);
    const speed = heartbeat.speeds.find((each) => each.alias === alias)?.decode ?? 0;
    const fits = load !== undefined || model.bytes <= info.memory.models;
    return [
      {
        machine: info.id,
        machineName: info.name,
        isLocal: info.id === selfId,
        name: alias,
        isLoaded: load !== undefined,
        isFree: fits && (load ? running < load.slots && load.waiting === 0 : running < 1),
        unusedSlots: load ? load.slots - load.running : 1,
        freeShare: load ? Math.max(0, load.slots - running) / Math.max(1, load.slots) : 0,
        speed,
        engine: info.engine,
        processor: `${info.processor.name}, ${info.processor.system}`,
        gpuLayers: load?.gpuLayers,
      },
    ];
  });
}

export function isSameModel(model: ModelKey, key: ModelKey): boolean {
  return model.files === key.files && model.settings === key.settings;
}

/**
 * Sorts candidates, best first: loaded models first; among these by the longest known prompt prefix, then this machine,
 * which needs no network, then by free slots and speed.
 * @param prefixCharacters characters of the prompt that a machine has processed before, by machine id
 */
export function rankCandidates(
  candidates: readonly Candidate[],
  prefixCharacters: ReadonlyMap<string, number>,
): Candidate[] {
  // An unmeasured speed counts as the best one; otherwise it would never be measured.
  const fastest = Math.max(1, ...candidates.map(({ speed }) => speed));
  const rank = (candidate: Candidate): readonly number[] => [
    Number(candidate.isLoaded),
    prefixCharacters.get(candidate.machine) ?? 0,
    Number(candidate.isLocal),
    candidate.freeShare * (candidate.speed || fastest),
  ];
  return candidates.toSorted((a, b) => compare(rank(b), rank(a)));
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [at, value] of a.entries()) if (value !== b[at]) return value - (b[at] ?? 0);
  return 0;
}

interface ResolvedModel {
  readonly model: MemberModel;
  readonly alias: string;
  readonly adapter: string | undefined;
}

/** Finds the model of a name on other machines, preferring a loaded one; without a name the default model. */
export function findModel(machines: readonly Member[], name: string | undefined): ResolvedModel | undefined {
  const found = machines.flatMap(({ info, heartbeat }) => {
    const named = info.models.map((model) => matchModel(model, name)).find((each) => each !== undefined);
    if (!named) return [];
    const isLoaded = heartbeat.loaded.some(({ alias }) => alias === named.model.alias);
    return [{ named, isLoaded, id: info.id }];
  });
  // Sorted by id, so that all machines choose the same model.
  const [best] = found.toSorted((a, b) => Number(b.isLoaded) - Number(a.isLoaded) || (a.id < b.id ? -1 : 1));
  return best?.named;
}

function matchModel(model: MemberModel, name: string | undefined): ResolvedModel | undefined {
  const { alias, spec, adapters, isDefault } = model;
  if (name === undefined) return isDefault ? { model, alias, adapter: undefined } : undefined;
  if (name === alias || name === spec || name === `${alias}:latest`)
    return { model, alias, adapter: undefined };
  const adapter = adapters.find((each) => name === `${alias}:${each}`);
  return adapter === undefined ? undefined : { model, alias, adapter };
}
