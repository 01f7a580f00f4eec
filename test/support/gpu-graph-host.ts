import { MEMORY_CELLS } from "../../wasm/memory-cells.ts";
import { KernelsAlone } from "./kernels-alone.ts";

const KERNELS = ["kernel_gpu_build", "kernel_gpu_graph"] as const;

/** Functions of the script that the kernels call (wasm/kernels/gpu-commands.h). */
const ASKED = ["script", "flush", "begin", "end", "replay"] as const;

/** The kernels that describe graphs to a GPU, with llama.cpp's functions and the script as the test has them. */
export class GpuGraphHost {
  /** Calls of the script's and of llama.cpp's functions, in their order. */
  readonly log: string[] = [];
  /** Answers of the script. */
  maxRecordings = 3;
  isSound = true;
  hasRecording = true;
  /** Result of llama.cpp's function for graphs. */
  status = 0;
  #kernels: KernelsAlone | undefined;

  static async start(script: number = 0xdab0000): Promise<GpuGraphHost> {
    const host = new GpuGraphHost();
    host.#kernels = await KernelsAlone.start(KERNELS, {
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
    });
    return host;
  }

  get view(): DataView {
    return this.#started.view;
  }

  /** Returns the calls logged while a kernel runs. */
  run(kernel: (typeof KERNELS)[number], first: number, second: number): string[] {
    this.log.length = 0;
    this.#started.call(kernel, BigInt(first), BigInt(second));
    return [...this.log];
  }

  /** Address of so many bytes, which are zero. */
  place(bytes: number): number {
    return this.#started.place(bytes);
  }

  pointer(at: number, value: number): void {
    this.#started.pointer(at, value);
  }

  /** Words that stand in the stream, which is then empty, as the script leaves it. */
  takeStream(): number[] {
    const words = this.view.getUint32(MEMORY_CELLS.gpuStreamWords, true);
    const from = Number(this.view.getBigUint64(MEMORY_CELLS.gpuStream, true));
    this.view.setUint32(MEMORY_CELLS.gpuStreamWords, 0, true);
    return Array.from({ length: words }, (_, at) => this.view.getUint32(from + 4 * at, true));
  }

  get #started(): KernelsAlone {
    if (!this.#kernels) throw new Error("the host has not started");
    return this.#kernels;
  }

  #answer(what: number, script: number): number {
    const asked = ASKED[what & 0xff] ?? `${what}`;
    const which = what >> 8;
    if (asked === "script") return script | this.maxRecordings;
    this.log.push(asked === "flush" ? asked : `${asked} ${which}`);
    if (asked === "end") return this.isSound ? 1 : 0;
    return asked === "replay" && !this.hasRecording ? 0 : 1;
  }
}
