import type { QUANTIZER_FUNCTIONS } from "../../../wasm/quantizer-image.ts";
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

  #call(name: QuantizerFunction | undefined, from: number, to: number, weights: number): void {
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

type QuantizerFunction = (typeof QUANTIZER_FUNCTIONS)[number];

/** Numbers of ggml's types. Every conversion goes through F32. */
const F32 = 0;
const IQ3_S = 21;
const IQ4_NL = 20;

/** Functions that convert a type to F32, by ggml's number of the type. Arguments: source, destination, number of weights. */
export const TO_F32: ReadonlyMap<number, QuantizerFunction> = new Map([
  [1, "ggml_fp16_to_fp32_row"],
  [2, "dequantize_row_q4_0"],
  [3, "dequantize_row_q4_1"],
  [6, "dequantize_row_q5_0"],
  [7, "dequantize_row_q5_1"],
  [8, "dequantize_row_q8_0"],
  [10, "dequantize_row_q2_K"],
  [11, "dequantize_row_q3_K"],
  [12, "dequantize_row_q4_K"],
  [13, "dequantize_row_q5_K"],
  [14, "dequantize_row_q6_K"],
  [16, "dequantize_row_iq2_xxs"],
  [17, "dequantize_row_iq2_xs"],
  [18, "dequantize_row_iq3_xxs"],
  [19, "dequantize_row_iq1_s"],
  [IQ4_NL, "dequantize_row_iq4_nl"],
  [IQ3_S, "dequantize_row_iq3_s"],
  [22, "dequantize_row_iq2_s"],
  [23, "dequantize_row_iq4_xs"],
  [29, "dequantize_row_iq1_m"],
  [30, "ggml_cpu_bf16_to_fp32"],
  [34, "dequantize_row_tq1_0"],
  [35, "dequantize_row_tq2_0"],
  [39, "dequantize_row_mxfp4"],
]);

/** Functions that convert F32 to a type, as ggml_quantize_chunk() does without an importance matrix; the same arguments. */
export const FROM_F32: ReadonlyMap<number, QuantizerFunction> = new Map([
  [1, "ggml_cpu_fp32_to_fp16"],
  [2, "quantize_row_q4_0_ref"],
  [3, "quantize_row_q4_1_ref"],
  [6, "quantize_row_q5_0_ref"],
  [7, "quantize_row_q5_1_ref"],
  [8, "quantize_row_q8_0_ref"],
  [10, "quantize_row_q2_K_ref"],
  [11, "quantize_row_q3_K_ref"],
  [12, "quantize_row_q4_K_ref"],
  [13, "quantize_row_q5_K_ref"],
  [14, "quantize_row_q6_K_ref"],
  // Has other arguments; #quantizeIq4Nl() calls it for each block.
  [IQ4_NL, "quantize_row_iq4_nl_impl"],
  [IQ3_S, "quantize_iq3_s"],
  [23, "quantize_iq4_xs"],
  [30, "ggml_cpu_fp32_to_bf16"],
  [34, "quantize_row_tq1_0_ref"],
  [35, "quantize_row_tq2_0_ref"],
  [39, "quantize_row_mxfp4_ref"],
]);
