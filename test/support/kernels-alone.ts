import { readFileSync } from "node:fs";
import { concatBytes, section, sized, sizedText, uleb, vector } from "../../wasm/linker/byte-writer.ts";
import { link } from "../../wasm/linker/link.ts";
import { parseObject } from "../../wasm/linker/object-file.ts";
import { KIND } from "../../wasm/linker/wasm-module.ts";
import { hostMemory, KERNELS } from "./kernel-host-module.ts";

const STACK_TOP = 1024 * 1024;
const I64 = 0x7e;
const PAGE_BYTES = 65_536;

/** A module that imports whatever the kernels call, and has nothing but the functions that some of them replace. */
function hostModule(
  replaced: readonly string[],
  pages: number,
): {
  module: Uint8Array;
  imports: Record<string, number>;
  replace: Record<string, number>;
} {
  const object = parseObject(readFileSync(KERNELS));
  const called = object.module.imports.filter(({ kind }) => kind === KIND.function);
  const typeOf = (name: string): number => {
    const symbol = object.symbols.find((each) => each.defined && each.name === name);
    return object.module.functionTypes[(symbol?.index ?? 0) - object.module.importedFunctions] ?? 0;
  };
  const memory = concatBytes([sizedText("env"), sizedText("memory"), [2, 5], uleb(pages), uleb(pages)]);
  const imports = called.map(({ name, typeIndex }) =>
    concatBytes([sizedText("env"), sizedText(name), [0], uleb(typeIndex ?? 0)]),
  );
  const stackPointer = concatBytes([[I64, 1, 0x42], sleb(STACK_TOP), [0x0b]]);
  const replace = Object.fromEntries(replaced.map((name, at) => [name, called.length + at]));
  const module = concatBytes([
    [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    section(1, concatBytes([uleb(object.module.typeCount), object.module.typeBytes])),
    section(2, vector([memory, ...imports])),
    section(3, vector(replaced.map((name) => uleb(typeOf(name))))),
    section(6, vector([stackPointer])),
    section(7, vector(replaced.map((name) => concatBytes([sizedText(name), [0], uleb(replace[name] ?? 0)])))),
    // Without a body of their own: unreachable.
    section(10, vector(replaced.map(() => sized(new Uint8Array([0, 0x00, 0x0b]))))),
  ]);
  return { module, imports: Object.fromEntries(called.map(({ name }, at) => [name, at])), replace };
}

function sleb(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7) {
    if (rest < 64) return [...bytes, rest];
    bytes.push((rest & 127) | 128);
  }
}

const unused = (name: string) => () => {
  throw new Error(`${name} is not to be called`);
};

/** A function of WebAssembly, with any numbers. */
type KernelFunction = (...values: (bigint | number)[]) => unknown;

/** Some kernels by themselves: what they call is a function of the test, and must not be called where the test has none. */
export class KernelsAlone {
  readonly memory: WebAssembly.Memory;
  readonly view: DataView;
  #pages: number;
  #next = 2 * STACK_TOP;
  #kernels: Record<string, KernelFunction> = {};

  private constructor(pages: number) {
    this.#pages = pages;
    this.memory = hostMemory(pages);
    this.view = new DataView(this.memory.buffer);
  }

  /** @param calls by the names under which the kernels call them */
  static async start(
    kernels: readonly string[],
    calls: Record<string, (...values: never[]) => unknown>,
    pages = 256,
  ): Promise<KernelsAlone> {
    const host = new KernelsAlone(pages);
    const { module, imports, replace } = hostModule(kernels, pages);
    const linked = link(module, { object: readFileSync(KERNELS), imports, replace });
    const env = {
      ...Object.fromEntries(Object.keys(imports).map((name) => [name, unused(name)])),
      ...calls,
      memory: host.memory,
    };
    const { instance } = await WebAssembly.instantiate(linked, { env });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    host.#kernels = instance.exports as Record<string, KernelFunction>;
    return host;
  }

  call(kernel: string, ...values: (bigint | number)[]): unknown {
    const found = this.#kernels[kernel];
    if (!found) throw new Error(`${kernel} was not named when the host started`);
    return found(...values);
  }

  /** Address of so many bytes, which are zero. */
  place(bytes: number): number {
    const at = this.#next;
    this.#next += Math.ceil(bytes / 16) * 16;
    if (this.#next > this.#pages * PAGE_BYTES) throw new RangeError("the memory is full");
    return at;
  }

  pointer(at: number, to: number): void {
    this.view.setBigUint64(at, BigInt(to), true);
  }
}
