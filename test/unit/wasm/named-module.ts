import { concatBytes, section, sized, sizedText, uleb, vector } from "../../../wasm/linker/byte-writer.ts";

const I32 = 0x7f;
const END = 0x0b;

/** A module of functions that take an i32 and return nothing, with a section that names them. */
export function namedModule(
  functions: readonly (readonly [name: string, code: readonly number[]])[],
): Uint8Array<ArrayBuffer> {
  const names = vector(functions.map(([name], index) => concatBytes([uleb(index), sizedText(name)])));
  return concatBytes([
    [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    section(1, vector([[0x60, 1, I32, 0]])),
    section(3, vector(functions.map(() => [0]))),
    section(10, vector(functions.map(([, code]) => sized(new Uint8Array([0, ...code, END]))))),
    section(0, concatBytes([sizedText("name"), [1], sized(names)])),
  ]);
}
