import type { PlacedMachine } from "./places.ts";

/** One that is away for longer than an update, or a restart of its system, takes is not expected back. */
const EXPECTED_MS = 3_600_000;
/** Forged machines that come and go must not fill the memory. */
const MOST_MACHINES = 64;

/** Machines that have left or fallen silent, as they were: what their models' names mean is known until they are back. */
export class DepartedMachines<Machine extends PlacedMachine> {
  /** A machine has another id when its daemon is started again. Those that have left last are at the end. */
  readonly #byName = new Map<string, { readonly machine: Machine; readonly since: number }>();

  /** Those that are expected back. */
  at(now: number): readonly Machine[] {
    return [...this.#byName.values()]
      .filter(({ since }) => now - since < EXPECTED_MS)
      .map(({ machine }) => machine);
  }

  left(machine: Machine, now: number): void {
    const { name } = machine.card;
    this.#byName.delete(name);
    this.#byName.set(name, { machine, since: now });
    const [first] = this.#byName.keys();
    if (this.#byName.size > MOST_MACHINES && first !== undefined) this.#byName.delete(first);
  }

  isBack(name: string): void {
    this.#byName.delete(name);
  }
}
