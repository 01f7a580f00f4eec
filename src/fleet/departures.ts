import type { PlacedMachine } from "./places.ts";

/** A machine that is gone for no longer is expected back: it restarts its daemon, or itself. */
const RETURN_MS = 60_000;
/** Machines that are kept, of at most a card's bytes each; of more that leave at once, those that have left first are forgotten. */
const MOST_KEPT = 64;

/** The machines that have just left, or fallen silent. Times are in milliseconds since any origin. */
export class Departures {
  readonly #byName = new Map<string, { readonly machine: PlacedMachine; readonly at: number }>();

  /** A machine is gone. */
  left(machine: PlacedMachine, now: number): void {
    const { name } = machine.card;
    // The last one to leave is the last of the map.
    this.#byName.delete(name);
    this.#byName.set(name, { machine, at: now });
    const [first] = this.#byName.keys();
    if (this.#byName.size > MOST_KEPT && first !== undefined) this.#byName.delete(first);
  }

  /** A machine is there, again or for the first time: its id is another one after each start, its name is not. */
  came(name: string): void {
    this.#byName.delete(name);
  }

  /** Those that are expected back. */
  expected(now: number): readonly PlacedMachine[] {
    for (const [name, { at }] of this.#byName) if (now - at >= RETURN_MS) this.#byName.delete(name);
    return [...this.#byName.values()].map(({ machine }) => machine);
  }
}
