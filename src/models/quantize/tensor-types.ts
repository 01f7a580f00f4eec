import { GGML_TYPES, ggmlTypeNumber } from "../gguf/ggml-types.ts";
import { InvalidGguf, quoted } from "../gguf/byte-reader.ts";
import type { FileType } from "./quantize-options.ts";
import { isQuantizable, OUTPUT, roleOf } from "./write-header.ts";

/** Facts about the model that the choice of types depends on. */
export interface QuantizedArchitecture {
  readonly architecture: string;
  readonly blocks: number;
  readonly experts: number;
  /** Query heads per key head in the first block; 0 without key heads. */
  readonly headsPerKey: number;
}

interface TensorShape {
  readonly name: string;
  readonly shape: readonly number[];
  /** Name of its current type. */
  readonly type: string;
}

interface ChosenType {
  readonly type: string;
  /** True if the preferred type does not fit its rows. */
  readonly isFallback: boolean;
}

/** A quantization does not fit a model: its blocks do not divide the rows of a tensor. */
export class IncompatibleRows extends Error {}

/** Fallback types for rows that are no multiple of a type's blocks of 256. */
const FALLBACKS: Readonly<Record<string, string>> = {
  IQ3_S: "IQ4_NL",
  IQ4_XS: "IQ4_NL",
  Q2_K: "Q4_0",
  Q3_K: "Q4_0",
  TQ1_0: "Q4_0",
  TQ2_0: "Q4_0",
  Q4_K: "Q5_0",
  Q5_K: "Q5_1",
  Q6_K: "Q8_0",
};

const FLOATS: ReadonlySet<string> = new Set(["F16", "BF16"]);

/**
 * Chooses the type of each tensor like llama-quant.cpp of llama.cpp without an importance matrix, so that files are
 * identical.
 * @param tensors in llama.cpp's order, on which the choice depends
 * @throws IncompatibleRows for rows that no type fits, and InvalidGguf for names that do not fit the model
 */
export function chooseTypes(
  tensors: readonly TensorShape[],
  model: QuantizedArchitecture,
  fileType: FileType,
): ChosenType[] {
  const valueTensors = tensors.filter(({ name }) => roleOf(name) === "attention-value").length;
  const isTied = !tensors.some(({ name }) => name === OUTPUT);
  const mixture = new TypeMixture(model, fileType, valueTensors, isTied);
  return tensors.map(({ name, shape, type }) => {
    if (!isQuantizable(name, shape)) return { type, isFallback: false };
    if (FLOATS.has(fileType.main)) return { type: fileType.main, isFallback: false };
    return typeForRows(name, shape, mixture.typeOf(name, shape));
  });
}

function typeForRows(name: string, [row = 1]: readonly number[], type: string): ChosenType {
  if (row % blockOf(type) === 0) return { type, isFallback: false };
  const other = FALLBACKS[type];
  if (other === undefined) {
    throw new IncompatibleRows(
      `its tensor ${quoted(name)} has rows of ${row} weights, which the blocks of ${type}, of ${blockOf(type)} weights, do not divide`,
    );
  }
  return { type: row % blockOf(other) === 0 ? other : "F16", isFallback: true };
}

function blockOf(type: string): number {
  return GGML_TYPES.get(ggmlTypeNumber(type))!.block;
}

const FALCON = "falcon";
/** Number of experts in Mixtral and similar models, whose attention tensors are relatively small. */
const MIXTRAL_EXPERTS = 8;

/** Rules that give some tensors more bits than others: llama_tensor_get_type_impl() of llama-quant.cpp. */
class TypeMixture {
  readonly #model: QuantizedArchitecture;
  readonly #file: string;
  readonly #main: string;
  /** Number of attention value tensors in the model, and of those and the ffn_down tensors seen so far. */
  readonly #valueTensors: number;
  #valuesSeen = 0;
  #downSeen = 0;
  readonly #isTied: boolean;

  constructor(model: QuantizedArchitecture, { name, main }: FileType, valueTensors: number, isTied: boolean) {
    this.#model = model;
    this.#file = name;
    this.#main = main;
    this.#valueTensors = valueTensors;
    this.#isTied = isTied;
  }

  typeOf(name: string, shape: readonly number[]): string {
    const role = roleOf(name);
    if (role === "output" || (this.#isTied && role === "token-embedding")) return this.#outputType(shape);
    if (this.#file === "MXFP4_MOE") return this.#expertType(role === "ffn-down" || isExpert(name), shape);
    switch (role) {
      case "token-embedding":
        return this.#file.startsWith("TQ") ? "Q4_K" : this.#main;
      case "attention-value":
        return this.#valueType(this.#valuesSeen++);
      case "attention-key":
        return this.#model.experts === MIXTRAL_EXPERTS ? "Q8_0" : this.#main;
      case "attention-output":
        return this.#attentionOutputType();
      case "ffn-down":
        return this.#downType(this.#blockOf(name, this.#downSeen++));
      default:
        if (isExpert(name)) this.#blockOf(name, 0);
        return this.#main;
    }
  }

  #outputType([row = 1]: readonly number[]): string {
    const keepsMore =
      this.#file === "MXFP4_MOE" ||
      this.#model.architecture === FALCON ||
      row % blockOf(this.#main) !== 0 ||
      this.#main === "Q8_0";
    return keepsMore ? "Q8_0" : "Q6_K";
  }

  /** bailingmoe3 alone has three-dimensional tensors that are no experts. */
  #expertType(isExpertMatrix: boolean, shape: readonly number[]): string {
    const isStack = (shape[2] ?? 1) > 1;
    return isStack && (isExpertMatrix || this.#model.architecture !== "bailingmoe3") ? "MXFP4" : "Q8_0";
  }

  #valueType(index: number): string {
    const { experts, headsPerKey } = this.#model;
    const isShared = headsPerKey >= 4;
    const type = this.#valueTypeOfFile(index, isShared);
    // In 70B models eight query heads share a value head, so these tensors are small.
    const shared = isOfType70B(this.#model) && (type === "Q3_K" || type === "Q4_K") ? "Q5_K" : type;
    return experts === MIXTRAL_EXPERTS ? "Q8_0" : shared;
  }

  #valueTypeOfFile(index: number, isShared: boolean): string {
    switch (this.#file) {
      case "Q2_K":
        return isShared ? "Q4_K" : "Q3_K";
      case "IQ3_S":
        return isShared ? "Q4_K" : this.#main;
      case "IQ3_M":
        return "Q4_K";
      case "Q3_K_M":
        return index < 2 ? "Q5_K" : "Q4_K";
      case "Q3_K_L":
        return "Q5_K";
      case "IQ4_NL":
      case "IQ4_XS":
        return isShared ? "Q5_K" : this.#main;
      case "Q4_K_M":
      case "Q5_K_M":
        return getsMoreBits(index, this.#valueTensors) ? "Q6_K" : this.#main;
      case "Q4_K_S":
        return index < 4 ? "Q5_K" : this.#main;
      default:
        return this.#main;
    }
  }

  #downType(block: number): string {
    const { architecture, blocks, experts } = this.#model;
    const isFalcon = architecture === FALCON;
    const more = getsMoreBits(block, blocks);
    const isEarly = block < Math.floor(blocks / 8);
    const isFirst = block < Math.floor(blocks / 16);
    switch (this.#file) {
      case "Q2_K":
        return "Q3_K";
      case "Q3_K_M":
        if (isFirst) return "Q5_K";
        return !isFalcon || more ? "Q4_K" : "Q3_K";
      case "IQ3_M":
        return isEarly || (experts === MIXTRAL_EXPERTS && more) ? "Q4_K" : this.#main;
      case "Q3_K_L":
        return isFalcon ? "Q4_K" : "Q5_K";
      case "Q4_K_M":
        if (!isFalcon) return more ? "Q6_K" : this.#main;
        if (isFirst) return "Q6_K";
        return more ? "Q5_K" : this.#main;
      case "IQ4_NL":
      case "IQ4_XS":
        return isEarly ? "Q5_K" : this.#main;
      case "Q5_K_M":
        return more ? "Q6_K" : this.#main;
      case "Q4_K_S":
        return !isFalcon && isEarly ? "Q5_K" : this.#main;
      default:
        return this.#main;
    }
  }

  #attentionOutputType(): string {
    const { architecture, experts } = this.#model;
    if (architecture === FALCON) return this.#file === "Q3_K_L" ? "Q4_K" : this.#main;
    const types = experts === MIXTRAL_EXPERTS ? ATTENTION_OUTPUT_MIXTRAL : ATTENTION_OUTPUT;
    return types[this.#file] ?? this.#main;
  }

  /** Returns the block of a tensor; for models with experts by its name, because they are not in order. */
  #blockOf(name: string, index: number): number {
    const { blocks, experts } = this.#model;
    if (experts <= 1) return index;
    const block = Number(/^blk\.(\d+)\./.exec(name)?.[1] ?? Number.NaN);
    if (block < blocks) return block;
    throw new InvalidGguf(`its tensor ${quoted(name)} belongs to no block`);
  }
}

const ATTENTION_OUTPUT: Readonly<Record<string, string>> = {
  Q2_K: "Q3_K",
  Q3_K_M: "Q4_K",
  Q3_K_L: "Q5_K",
  IQ3_M: "Q4_K",
};

const ATTENTION_OUTPUT_MIXTRAL: Readonly<Record<string, string>> = Object.fromEntries(
  ["Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ3_S", "IQ3_M", "IQ4_XS"].map((file) => [
    file,
    "Q5_K",
  ]),
);

function isExpert(name: string): boolean {
  return name.includes("ffn_up") || name.includes("ffn_gate");
}

/** True for the first and the last eighth of the blocks, and every third one in between. */
function getsMoreBits(index: number, count: number): boolean {
  const eighth = Math.floor(count / 8);
  return index < eighth || index >= Math.floor((7 * count) / 8) || (index - eighth) % 3 === 2;
}

/** Number of blocks of models that llama.cpp classifies as 70B, by architecture. */
const BLOCKS_OF_70B: Readonly<Record<string, number>> = {
  deci: 80,
  jais2: 68,
  llama: 80,
  "llama-embed": 80,
  olmo: 80,
  qwen2: 80,
};

function isOfType70B({ architecture, blocks, headsPerKey }: QuantizedArchitecture): boolean {
  // A llama with 80 blocks and a key head per query head is a 65B.
  const is65B = architecture.startsWith("llama") && headsPerKey === 1;
  return BLOCKS_OF_70B[architecture] === blocks && !is65B;
}
