import type { Beat, Card, CardModel } from "./card.ts";

/** The same model: the same files with the same settings. */
export interface ModelKey {
  readonly files: string;
  readonly settings: string;
}

/** A machine with what it has told. */
export interface PlacedMachine {
  readonly card: Card;
  readonly beat: Beat;
}

/** A machine that could answer. */
export interface Place {
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
export function placesOf(
  key: ModelKey,
  machines: readonly PlacedMachine[],
  selfId: string,
  opened: (machine: string, alias: string) => number,
): Place[] {
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

export function isSame(model: Pick<CardModel, "files" | "settings">, key: ModelKey): boolean {
  return model.files === key.files && model.settings === key.settings;
}

/**
 * The order in which machines are asked: those that have loaded the model come before the others; of these, the one that
 * has read most of the prompt, then this one, which needs no network, then by free slots and speed.
 * @param known characters of the prompt that a machine has read before
 */
export function inOrder(places: readonly Place[], known: ReadonlyMap<string, number>): Place[] {
  // A speed that nobody has measured is as good as the best: otherwise it never would be.
  const fastest = Math.max(1, ...places.map(({ speed }) => speed));
  const rank = (place: Place): readonly number[] => [
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
