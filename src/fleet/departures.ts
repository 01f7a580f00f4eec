import { type Card, NOT_DESCRIBED } from "./card.ts";
import type { PlacedMachine } from "./places.ts";

/** What a machine had that is gone for longer nobody has. */
const KEPT_MS = 3_600_000;
/** Machines that are kept, of at most a card's bytes each; of more that leave at once, those that have left first are forgotten. */
const MOST_KEPT = 64;

/** The machines that have just left, or fallen silent. Times are in milliseconds since any origin. */
export class Departures {
  readonly #byName = new Map<string, { readonly machine: PlacedMachine; readonly at: number }>();

  /** A machine is gone. */
  left(machine: PlacedMachine, now: number): void {
    const { name, revision } = machine.card;
    if (revision === NOT_DESCRIBED) return;
    // The last one to leave is the last of the map.
    this.#byName.delete(name);
    this.#byName.set(name, { machine, at: now });
    const [first] = this.#byName.keys();
    if (this.#byName.size > MOST_KEPT && first !== undefined) this.#byName.delete(first);
  }

  /** A machine has told what it has, again or for the first time: its id is another one after each start, its name is not. */
  came({ name, revision }: Pick<Card, "name" | "revision">): void {
    if (revision !== NOT_DESCRIBED) this.#byName.delete(name);
  }

  /** Those that have left within so many milliseconds. */
  lately(now: number, millis = KEPT_MS): readonly PlacedMachine[] {
    for (const [name, { at }] of this.#byName) if (now - at >= KEPT_MS) this.#byName.delete(name);
    return [...this.#byName.values()].filter(({ at }) => now - at < millis).map(({ machine }) => machine);
  }
}
