import type { StockFunction } from "../../../wasm/changes.ts";
import { FROM_F32, IQ3_S, IQ4_NL, TO_F32 } from "../../../wasm/quantizer-image.ts";
import { type BlockFormat, bytesOf } from "./quantize-job.ts";

const PAGE_BYTES = 64 * 1024;
/** Memory limits of llama.cpp's script; a thread uses some 16 MB more than the initial size. */
const FIRST_PAGES = 2048n;
const MAX_PAGES = 65_536n;
const F32_BYTES = 4;
/** Number of points in the grid of IQ3_S. */
const IQ3_S_GRID = 512;
/** Attempts to improve a scale, as many as llama.cpp makes when it quantizes. */
const IQ4_NL_ATTEMPTS = 7;
const IQ4_NL_WEIGHTS = 32;
/** Offsets in the scratch memory of quantize_row_iq4_nl_impl(): one scale, and a float and a byte for each weight. */
const IQ4_NL_SCRATCH = {
  highOffset: 0,
  scale: 8,
  weights: 16,
  levels: 16 + IQ4_NL_WEIGHTS * F32_BYTES,
  bytes: 256,
};

type Callable = (...args: (number | bigint)[]) => number | bigint | undefined;

/** Error for a tensor with values that are not finite, or with invalid blocks. */
export class InvalidWeights extends Error {
  override readonly name = "InvalidWeights";
}

/** Instance of llama.cpp's functions that convert weights, with its own memory. */
export class Quantizer {
  readonly #memory: WebAssembly.Memory;
  readonly #exports: Record<string, Callable>;
  #scratch = { at: 0, bytes: 0 };
  #hasGrid = false;

  private constructor(memory: WebAssembly.Memory, exports: Record<string, Callable>) {
    this.#memory = memory;
    this.#exports = exports;
  }

  /** @param module compiled result of buildQuantizerImage() */
  static async start(module: WebAssembly.Module): Promise<Quantizer> {
    const limits = { initial: FIRST_PAGES, maximum: MAX_PAGES, shared: true, address: "i64" };
    // The DOM's types do not know memory64 yet.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const memory = new WebAssembly.Memory(limits as unknown as WebAssembly.MemoryDescriptor);
    const instance = await WebAssembly.instantiate(module, importsOf(module, memory));
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return new Quantizer(memory, instance.exports as Record<string, Callable>);
  }

  /**
   * Converts weights through F32; if both formats are the same, checks the weights and returns them unchanged.
   * @param input the blocks of `weights` weights
   * @param padding number of zeros to append
   * @throws InvalidWeights as llama.cpp's quantization does
   */
  convert(
    input: Uint8Array,
    { weights, from, to, padding }: { weights: number; from: BlockFormat; to: BlockFormat; padding: number },
  ): Uint8Array<ArrayBuffer> {
    const outputBytes = bytesOf(weights, to);
    const at = this.#allocate(input.length, weights * F32_BYTES, outputBytes);
    new Uint8Array(this.#memory.buffer).set(input, at.input);
    this.#check(from, at.input, input.length);
    let output = at.input;
    if (from.type !== to.type) {
      output = at.output;
      const floats = from.type === F32 ? at.input : at.floats;
      if (from.type !== F32) this.#call(TO_F32.get(from.type), at.input, floats, weights);
      this.#quantize(to, floats, output, weights, at.scratch);
      this.#check(to, output, outputBytes);
    }
    const result = new Uint8Array(outputBytes + padding);
    result.set(new Uint8Array(this.#memory.buffer, output, outputBytes));
    return result;
  }

  #quantize({ type, bytes }: BlockFormat, from: number, to: number, weights: number, scratch: number): void {
    if (type === IQ4_NL) return this.#quantizeIq4Nl(bytes, from, to, weights, scratch);
    if (type === IQ3_S && !this.#hasGrid) {
      this.#function("iq3xs_init_impl")(IQ3_S_GRID);
      this.#hasGrid = true;
    }
    this.#call(FROM_F32.get(type), from, to, weights);
  }

  /** Replaces quantize_iq4_nl(), which the compiler has inlined: only the function for one block is left. */
  #quantizeIq4Nl(blockBytes: number, from: number, to: number, weights: number, scratch: number): void {
    const quantizeBlock = this.#function("quantize_row_iq4_nl_impl");
    const { highOffset: high, scale, weights: weightScratch, levels } = IQ4_NL_SCRATCH;
    for (let block = 0; block * IQ4_NL_WEIGHTS < weights; block++) {
      const out = to + block * blockBytes;
      quantizeBlock(
        IQ4_NL_WEIGHTS,
        BigInt(from + block * IQ4_NL_WEIGHTS * F32_BYTES),
        BigInt(out),
        BigInt(out + 2),
        BigInt(scratch + high),
        0n,
        BigInt(scratch + scale),
        BigInt(scratch + weightScratch),
        BigInt(scratch + levels),
        IQ4_NL_ATTEMPTS,
      );
    }
  }

  #check({ type }: BlockFormat, at: number, bytes: number): void {
    let isValid: unknown;
    try {
      isValid = this.#function("ggml_validate_row_data")(type, BigInt(at), BigInt(bytes));
    } catch (error) {
      // The function prints the problem to standard error, which this module does not have.
      if (!(error instanceof NoSystem)) throw error;
    }
    if (isValid !== 1) throw new InvalidWeights();
  }

  #call(name: StockFunction | undefined, from: number, to: number, weights: number): void {
    if (name === undefined) throw new TypeError("weights of this type cannot be converted");
    this.#function(name)(BigInt(from), BigInt(to), BigInt(weights));
  }

  #function(name: string): Callable {
    const found = this.#exports[name];
    if (!found) throw new TypeError(`the module has no ${name}`);
    return found;
  }

  #allocate(inputBytes: number, floatBytes: number, outputBytes: number): Record<Part, number> {
    const [input, floats, output] = [inputBytes, floatBytes, outputBytes].map(roundedUp);
    const needed = input! + floats! + output! + IQ4_NL_SCRATCH.bytes;
    if (needed > this.#scratch.bytes) {
      if (this.#scratch.at > 0) this.#function("free")(BigInt(this.#scratch.at));
      const at = Number(this.#function("memalign")(BigInt(ALIGNMENT), BigInt(needed)));
      if (at === 0) throw new RangeError("no memory is left");
      this.#scratch = { at, bytes: needed };
    }
    const { at } = this.#scratch;
    return {
      input: at,
      floats: at + input!,
      output: at + input! + floats!,
      scratch: at + input! + floats! + output!,
    };
  }
}

type Part = "input" | "floats" | "output" | "scratch";

const ALIGNMENT = 64;

function roundedUp(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

/** Error for a call of a system function other than memory growth, which the module does not get. */
class NoSystem extends Error {}

function importsOf(module: WebAssembly.Module, memory: WebAssembly.Memory): WebAssembly.Imports {
  const imports: WebAssembly.Imports = {};
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    const group = (imports[from] ??= {});
    if (kind === "memory") group[name] = memory;
    else if (name === "emscripten_resize_heap") group[name] = (bytes: bigint) => grow(memory, bytes);
    else
      group[name] = () => {
        throw new NoSystem(name);
      };
  }
  return imports;
}

function grow(memory: WebAssembly.Memory, bytes: bigint): number {
  try {
    const missing = Number(bytes) - memory.buffer.byteLength;
    Reflect.apply(memory.grow.bind(memory), undefined, [BigInt(Math.ceil(missing / PAGE_BYTES))]);
    return 1;
  } catch {
    return 0;
  }
}

/** Number of ggml's type through which every conversion goes. */
const F32 = 0;
