import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";

/** As many as our kernels keep (wasm/kernels/given-tokens.h): more than all slots say in one step. */
const MOST_CHOSEN = 8192;
const [NUMBER, TOKEN, FIELDS] = [0, 1, 2] as const;

/** Tokens of an answer, in their order. */
export interface Chosen {
  readonly ids: number[];
  /** Those of them that were given, and instead of which the model would have said others here. */
  replaced: number;
}

/** Reads which tokens the sampler has chosen for the answers that have a number; our kernels write them down. */
export class ChosenTokens {
  readonly #memory: WebAssembly.Memory;
  #read: number;

  /**
   * @param memory of the WASM, shared with the thread that computes
   * @param read how many tokens have been read
   */
  constructor(memory: WebAssembly.Memory, read = 0) {
    this.#memory = memory;
    this.#read = read;
  }

  /** By the answer's number: those since the last call. To be called between steps, after each one. */
  take(): Map<number, Chosen> {
    const chosen = new Map<number, Chosen>();
    // The buffer is replaced when the memory grows.
    const { buffer } = this.#memory;
    const count = new DataView(buffer).getUint32(MEMORY_CELLS.chosenCount, true);
    if (count === this.#read) return chosen;
    const at = Number(new DataView(buffer).getBigUint64(MEMORY_CELLS.chosenTokens, true));
    const written = new Int32Array(buffer, at, FIELDS * MOST_CHOSEN);
    for (; this.#read !== count; this.#read = (this.#read + 1) >>> 0) {
      const entry = FIELDS * (this.#read % MOST_CHOSEN);
      const [number = 0, token = 0] = [written[entry + NUMBER], written[entry + TOKEN]];
      const known = chosen.get(number) ?? { ids: [], replaced: 0 };
      chosen.set(number, known);
      // Turned over where it replaces what the model would have said.
      known.ids.push(token < 0 ? ~token : token);
      if (token < 0) known.replaced += 1;
    }
    return chosen;
  }
}
