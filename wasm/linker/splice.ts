import { concatBytes, uleb } from "./byte-writer.ts";
import type { WasmModule } from "./wasm-module.ts";

/** Instructions within a function, and the kernel call that replaces them. */
export interface Splice {
  /** Index of the function. Its body should be pinned, because the same bytes may mean something else in another one. */
  readonly index: number;
  /** Bytes to replace, and how often they occur. */
  readonly find: readonly number[];
  readonly times: number;
  /** Instructions that push the arguments of the kernel; absent: none. */
  readonly push?: readonly number[];
  /** Absent: no kernel is called. */
  readonly kernel?: string;
  /** Instructions after the call; absent: none. */
  readonly behind?: readonly number[];
}

const CALL = 0x10;

/**
 * Applies all splices to the bodies of the module's functions.
 * @throws TypeError when code does not occur as often as it should
 */
export function splice(
  module: WasmModule,
  splices: readonly Splice[],
  indexOf: (kernel: string) => number,
): Uint8Array[] {
  const bodies = [...module.bodies];
  for (const { index, find, times, push = [], kernel, behind = [] } of splices) {
    const body = bodies[index - module.importedFunctions];
    const places = body ? occurrencesOf(find, body) : [];
    if (!body || places.length !== times)
      throw new TypeError(
        `function ${index} has the code that ${kernel ?? "nothing"} replaces ${places.length} times`,
      );
    const call = [...push, ...(kernel === undefined ? [] : [CALL, ...uleb(indexOf(kernel))]), ...behind];
    const restStarts = [0, ...places.map((place) => place + find.length)];
    const parts = restStarts.flatMap((start, at) => {
      const rest = body.subarray(start, places[at]);
      return at < places.length ? [rest, call] : [rest];
    });
    bodies[index - module.importedFunctions] = concatBytes(parts);
  }
  return bodies;
}

function occurrencesOf(find: readonly number[], body: Uint8Array): number[] {
  const places: number[] = [];
  let at = body.indexOf(find[0]!);
  while (at >= 0) {
    const isHere = find.every((byte, offset) => body[at + offset] === byte);
    if (isHere) places.push(at);
    at = body.indexOf(find[0]!, isHere ? at + find.length : at + 1);
  }
  return places;
}
