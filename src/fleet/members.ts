import { z } from "zod";

/**
 * What machines tell each other about themselves. Whoever can reach the NATS server may have written it, so every text and
 * list has a limit.
 */

/** Machines with another number do not work together; it changes when a message does. */
export const PROTOCOL = 1;

/** The revision of a card whose machine has only been started, and has not looked at its models yet. */
export const NOT_DESCRIBED = 0;

/** Of a message with a card: hundreds of models; what is longer is not read. */
export const MAX_CARD_BYTES = 256 * 1024;
/** Of a message with a beat. */
export const MAX_HEARTBEAT_BYTES = 64 * 1024;
/** Longest name of a model, file, processor or GPU. */
const MAX_CHARACTERS = 1024;
/** More than fit into a message. */
const MAX_MODELS = 10_000;
const MAX_GPUS = 64;
const MAX_ADAPTERS = 16;

const text = z.string().max(MAX_CHARACTERS);
const count = z.int().min(0);
const bytes = z.number().min(0);
/** Random, for one run of a daemon. */
export const idSchema = z.string().regex(/^[0-9a-f]{32}$/);
const hash = z.string().regex(/^[0-9a-f]{64}$/);

/** Of a GGUF header, what lists of models show. */
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

const cardModelSchema = z.object({
  alias: text,
  /** Where it comes from on the hub. */
  spec: text.optional(),
  /** SHA-256 of what identifies its files; equal for the same files, wherever they are. */
  files: hash,
  /** SHA-256 of the settings that its answers depend on. */
  settings: hash,
  /** Bytes of memory that its files take when it is loaded, at least. */
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
export type MemberModel = z.infer<typeof cardModelSchema>;

const gpuSchema = z.object({ name: text, backend: text, memory: bytes.optional() });

/** What rarely changes. Other machines ask for it when a beat has a revision that they do not know. */
export const memberInfoSchema = z.object({
  protocol: z.literal(PROTOCOL),
  id: idSchema,
  revision: count,
  name: text,
  version: text,
  /** SHA-256 of the engine's WebAssembly: equal ones generate equal texts. */
  engine: text,
  processor: z.object({ name: text, system: text, usable: count, cores: count }),
  gpus: z.array(gpuSchema).max(MAX_GPUS),
  /** Bytes of the machine, and those that models may use. */
  memory: z.object({ total: bytes, models: bytes }),
  models: z.array(cardModelSchema).max(MAX_MODELS),
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
  /** Tokens per second of its last answers and prompts. */
  decode: z.number().min(0),
  prefill: z.number().min(0),
});

/** Sent twice a second by each machine, and once more when it leaves. */
export const heartbeatSchema = z.object({
  protocol: z.int(),
  id: idSchema,
  revision: count,
  state: z.enum(["ready", "draining", "gone"]),
  /** Bytes that models use. */
  memoryUsed: bytes,
  loaded: z.array(loadedSchema).max(MAX_MODELS),
  speeds: z.array(speedSchema).max(MAX_MODELS),
});
export type Heartbeat = z.infer<typeof heartbeatSchema>;

/** The same model: the same files with the same settings. */
export interface ModelKey {
  readonly files: string;
  readonly settings: string;
}

/** A machine with what it has told. */
export interface CandidateMachine {
  readonly card: MemberInfo;
  readonly beat: Heartbeat;
}

/** A machine that could answer. */
export interface Candidate {
  /** Its id. */
  readonly machine: string;
  /** What people call it. */
  readonly machineName: string;
  readonly isLocal: boolean;
  /** Of the model, there. */
  readonly name: string;
  readonly isLoaded: boolean;
  /** Whether, as far as is known, it could begin at once. */
  readonly isFree: boolean;
  /** Slots that were free when it last told; a machine that has not loaded the model takes one request. */
  readonly unused: number;
  /** From 0 to 1. */
  readonly freeSlots: number;
  /** Tokens per second; 0: unknown. */
  readonly speed: number;
  /** SHA-256 of its engine. */
  readonly engine: string;
  /** Its processor and system. */
  readonly processor: string;
  /** If it has loaded the model. */
  readonly gpuLayers: number | undefined;
}

/**
 * The machines that have a model.
 * @param opened by machine: requests that this one has sent there, less those that have ended, since its last beat
 */
export function candidatesFor(
  key: ModelKey,
  machines: readonly CandidateMachine[],
  selfId: string,
  opened: (machine: string, alias: string) => number,
): Candidate[] {
  return machines.flatMap(({ card, beat }) => {
    const model = card.models.find((each) => isSame(each, key));
    if (!model || beat.state !== "ready") return [];
    const { alias } = model;
    const load = beat.loaded.find((each) => each.alias === alias);
    const running = (load?.running ?? 0) + opened(card.id, alias);
    const speed = beat.speeds.find((each) => each.alias === alias)?.decode ?? 0;
    const fits = load !== undefined || model.bytes <= card.memory.models;
    return [
      {
        machine: card.id,
        machineName: card.name,
        isLocal: card.id === selfId,
        name: alias,
        isLoaded: load !== undefined,
        isFree: fits && (load ? running < load.slots && load.waiting === 0 : running < 1),
        unused: load ? load.slots - load.running : 1,
        freeSlots: load ? Math.max(0, load.slots - running) / Math.max(1, load.slots) : 0,
        speed,
        engine: card.engine,
        processor: `${card.processor.name}, ${card.processor.system}`,
        gpuLayers: load?.gpuLayers,
      },
    ];
  });
}

export function isSame(model: Pick<MemberModel, "files" | "settings">, key: ModelKey): boolean {
  return model.files === key.files && model.settings === key.settings;
}

/**
 * The order in which machines are asked: those that have loaded the model come before the others; of these, the one that
 * has read most of the prompt, then this one, which needs no network, then by free slots and speed.
 * @param known characters of the prompt that a machine has read before
 */
export function inOrder(places: readonly Candidate[], known: ReadonlyMap<string, number>): Candidate[] {
  // A speed that nobody has measured is as good as the best: otherwise it never would be.
  const fastest = Math.max(1, ...places.map(({ speed }) => speed));
  const rank = (place: Candidate): readonly number[] => [
    Number(place.isLoaded),
    known.get(place.machine) ?? 0,
    Number(place.isLocal),
    place.freeSlots * (place.speed || fastest),
  ];
  return places.toSorted((a, b) => compare(rank(b), rank(a)));
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [at, value] of a.entries()) if (value !== b[at]) return value - (b[at] ?? 0);
  return 0;
}

interface NamedModel {
  readonly model: MemberModel;
  readonly alias: string;
  readonly adapter: string | undefined;
}

/** The model that a name means on other machines, best one that is loaded; without a name a default model. */
export function findIn(
  machines: readonly CandidateMachine[],
  name: string | undefined,
): NamedModel | undefined {
  const found = machines.flatMap(({ card, beat }) => {
    const named = card.models.map((model) => meant(model, name)).find((each) => each !== undefined);
    if (!named) return [];
    const isLoaded = beat.loaded.some(({ alias }) => alias === named.model.alias);
    return [{ named, isLoaded, id: card.id }];
  });
  // All entrances choose the same one.
  const [best] = found.toSorted((a, b) => Number(b.isLoaded) - Number(a.isLoaded) || (a.id < b.id ? -1 : 1));
  return best?.named;
}

function meant(model: MemberModel, name: string | undefined): NamedModel | undefined {
  const { alias, spec, adapters, isDefault } = model;
  if (name === undefined) return isDefault ? { model, alias, adapter: undefined } : undefined;
  if (name === alias || name === spec || name === `${alias}:latest`)
    return { model, alias, adapter: undefined };
  const adapter = adapters.find((each) => name === `${alias}:${each}`);
  return adapter === undefined ? undefined : { model, alias, adapter };
}
