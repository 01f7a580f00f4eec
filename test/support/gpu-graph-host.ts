import { readFileSync } from "node:fs";
import { MEMORY_CELLS } from "../../wasm/memory-cells.ts";
import { concatBytes, sized, uleb, vector } from "../../wasm/linker/byte-writer.ts";
import { link } from "../../wasm/linker/link.ts";
import { parseObject } from "../../wasm/linker/object-file.ts";
import { KIND } from "../../wasm/linker/wasm-module.ts";
import { hostMemory, KERNELS } from "./kernel-host-module.ts";

const MEMORY_PAGES = 256;
const PAGE_BYTES = 65_536;
const REPLACED = ["kernel_gpu_build", "kernel_gpu_graph"] as const;
const STACK_TOP = 1024 * 1024;
const I64 = 0x7e;

const text = (value: string): Uint8Array => sized(new TextEncoder().encode(value));
const section = (id: number, content: Uint8Array): Uint8Array => concatBytes([[id], sized(content)]);

/** A module that imports whatever the kernels call, and has nothing but the functions that two of them replace. */
function hostModule(): {
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
  const memory = concatBytes([text("env"), text("memory"), [2, 5], uleb(MEMORY_PAGES), uleb(MEMORY_PAGES)]);
  const imports = called.map(({ name, typeIndex }) =>
    concatBytes([text("env"), text(name), [0], uleb(typeIndex ?? 0)]),
  );
  const stackPointer = concatBytes([[I64, 1, 0x42], sleb(STACK_TOP), [0x0b]]);
  const replace = Object.fromEntries(REPLACED.map((name, at) => [name, called.length + at]));
  const module = concatBytes([
    [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    section(1, concatBytes([uleb(object.module.typeCount), object.module.typeBytes])),
    section(2, vector([memory, ...imports])),
    section(3, vector(REPLACED.map((name) => uleb(typeOf(name))))),
    section(6, vector([stackPointer])),
    section(7, vector(REPLACED.map((name) => concatBytes([text(name), [0], uleb(replace[name] ?? 0)])))),
    // Without a body of their own: unreachable.
    section(10, vector(REPLACED.map(() => sized(new Uint8Array([0, 0x00, 0x0b]))))),
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

type Kernels = Record<string, (first: bigint, second: bigint) => number>;

/** What the kernels ask the script (wasm/kernels/gpu-commands.h). */
export const ASKED = ["script", "flush", "begin", "end", "replay"] as const;

/** The kernels that describe graphs to a GPU, with llama.cpp's functions and the script as the test has them. */
const unused = (name: string) => () => {
  throw new Error(`${name} is not to be called`);
};

export class GpuGraphHost {
  readonly memory = hostMemory(MEMORY_PAGES);
  readonly view = new DataView(this.memory.buffer);
  /** What the script was asked, and when llama.cpp's functions were called. */
  readonly log: string[] = [];
  /** Answers of the script. */
  mostRecordings = 3;
  isSound = true;
  hasRecording = true;
  /** What llama.cpp's function for graphs returns. */
  status = 0;
  #next = 2 * STACK_TOP;
  #kernels: Kernels = {};

  static async start(script: number = 0xdab0000): Promise<GpuGraphHost> {
    const host = new GpuGraphHost();
    const { module, imports, replace } = hostModule();
    const linked = link(module, { object: readFileSync(KERNELS), imports, replace });
    const env = {
      ...Object.fromEntries(Object.keys(imports).map((name) => [name, unused(name)])),
      memory: host.memory,
      try_to_allocate: (bytes: bigint) => BigInt(host.place(Number(bytes))),
      free_memory: () => {},
      ask_gpu_script: (_nothing: bigint, what: number) => host.#answer(what, script),
      original_gpu_graph: () => {
        host.log.push("encode");
        return host.status;
      },
      original_gpu_build: () => {
        host.log.push("build");
        return 1;
      },
    };
    const { instance } = await WebAssembly.instantiate(linked, { env });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    host.#kernels = instance.exports as Kernels;
    return host;
  }

  /** What is logged while a kernel runs. */
  run(kernel: (typeof REPLACED)[number], first: number, second: number): string[] {
    this.log.length = 0;
    this.#kernels[kernel]?.(BigInt(first), BigInt(second));
    return [...this.log];
  }

  /** Address of so many bytes, which are zero. */
  place(bytes: number): number {
    const at = this.#next;
    this.#next += Math.ceil(bytes / 16) * 16;
    if (this.#next > MEMORY_PAGES * PAGE_BYTES) throw new RangeError("the memory is full");
    return at;
  }

  pointer(at: number, value: number): void {
    this.view.setBigUint64(at, BigInt(value), true);
  }

  /** Words that stand in the stream, which is then empty, as the script leaves it. */
  takeStream(): number[] {
    const words = this.view.getUint32(MEMORY_CELLS.gpuStreamWords, true);
    const from = Number(this.view.getBigUint64(MEMORY_CELLS.gpuStream, true));
    this.view.setUint32(MEMORY_CELLS.gpuStreamWords, 0, true);
    return Array.from({ length: words }, (_, at) => this.view.getUint32(from + 4 * at, true));
  }

  #answer(what: number, script: number): number {
    const asked = ASKED[what & 0xff] ?? `${what}`;
    const which = what >> 8;
    if (asked === "script") return script | this.mostRecordings;
    this.log.push(asked === "flush" ? asked : `${asked} ${which}`);
    if (asked === "end") return this.isSound ? 1 : 0;
    return asked === "replay" && !this.hasRecording ? 0 : 1;
  }
}
