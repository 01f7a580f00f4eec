import { GGML_TYPES, ggmlTypeNumber } from "../gguf/ggml-types.ts";
import { InvalidGguf, quoted } from "../gguf/byte-reader.ts";
import type { FileType } from "./quantize-options.ts";
import { isQuantizable, OUTPUT, roleOf } from "./write-header.ts";

/** What the choice of types depends on besides the tensors. */
export interface QuantizedModel {
  readonly architecture: string;
  readonly blocks: number;
  readonly experts: number;
  /** Query heads for each key head of the first block; 0 without keys. */
  readonly headsPerKey: number;
}

interface TensorShape {
  readonly name: string;
  readonly shape: readonly number[];
  /** Name of its present type. */
  readonly type: string;
}

interface ChosenType {
  readonly type: string;
  /** The wanted type's blocks do not divide its rows. */
  readonly isFallback: boolean;
}

/** A quantization cannot be used for a model: its blocks do not divide the rows of a tensor. */
export class UnfitRows extends Error {}

/** Other types for rows that a type's blocks of 256 do not divide. */
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
 * Chooses the type of each tensor as llama-quant.cpp of llama.cpp does without an importance matrix, so that files are the
 * same.
 * @param tensors in the order of llama.cpp, on which the choice depends
 * @throws UnfitRows for rows that no type fits, and InvalidGguf for names that do not fit the model
 */
export function chooseTypes(
  tensors: readonly TensorShape[],
  model: QuantizedModel,
  fileType: FileType,
): ChosenType[] {
  const values = tensors.filter(({ name }) => roleOf(name) === "attention-value").length;
  const isTied = !tensors.some(({ name }) => name === OUTPUT);
  const mixture = new Mixture(model, fileType, values, isTied);
  return tensors.map(({ name, shape, type }) => {
    if (!isQuantizable(name, shape)) return { type, isFallback: false };
    if (FLOATS.has(fileType.main)) return { type: fileType.main, isFallback: false };
    return fitting(name, shape, mixture.typeOf(name, shape));
  });
}

function fitting(name: string, [row = 1]: readonly number[], type: string): ChosenType {
  if (row % blockOf(type) === 0) return { type, isFallback: false };
  const other = FALLBACKS[type];
  if (other === undefined) {
    throw new UnfitRows(
      `its tensor ${quoted(name)} has rows of ${row} weights, which the blocks of ${type}, of ${blockOf(type)} weights, do not divide`,
    );
  }
  return { type: row % blockOf(other) === 0 ? other : "F16", isFallback: true };
}

function blockOf(type: string): number {
  return GGML_TYPES.get(ggmlTypeNumber(type))!.block;
}

const FALCON = "falcon";
/** Models of eight experts, as Mixtral, whose attention is small beside them. */
const EIGHT = 8;

/** The rules by which some tensors get more bits than others: llama_tensor_get_type_impl() of llama-quant.cpp. */
class Mixture {
  readonly #model: QuantizedModel;
  readonly #file: string;
  readonly #main: string;
  /** Number of tensors with attention values in the model, and of those and the ffn_down seen so far. */
  readonly #values: number;
  #value = 0;
  #down = 0;
  readonly #isTied: boolean;

  constructor(model: QuantizedModel, { name, main }: FileType, values: number, isTied: boolean) {
    this.#model = model;
    this.#file = name;
    this.#main = main;
    this.#values = values;
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
        return this.#valueType(this.#value++);
      case "attention-key":
        return this.#model.experts === EIGHT ? "Q8_0" : this.#main;
      case "attention-output":
        return this.#attentionOutputType();
      case "ffn-down":
        return this.#downType(this.#blockOf(name, this.#down++));
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

  /** Only bailingmoe3 has other tensors of three dimensions. */
  #expertType(isExpertMatrix: boolean, shape: readonly number[]): string {
    const isStack = (shape[2] ?? 1) > 1;
    return isStack && (isExpertMatrix || this.#model.architecture !== "bailingmoe3") ? "MXFP4" : "Q8_0";
  }

  #valueType(index: number): string {
    const { experts, headsPerKey } = this.#model;
    const isShared = headsPerKey >= 4;
    const type = this.#valueTypeOfFile(index, isShared);
    // Eight heads share them, so they are small there.
    const shared = isOfType70B(this.#model) && (type === "Q3_K" || type === "Q4_K") ? "Q5_K" : type;
    return experts === EIGHT ? "Q8_0" : shared;
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
        return deservesMore(index, this.#values) ? "Q6_K" : this.#main;
      case "Q4_K_S":
        return index < 4 ? "Q5_K" : this.#main;
      default:
        return this.#main;
    }
  }

  #downType(block: number): string {
    const { architecture, blocks, experts } = this.#model;
    const isFalcon = architecture === FALCON;
    const more = deservesMore(block, blocks);
    const isEarly = block < Math.floor(blocks / 8);
    const isFirst = block < Math.floor(blocks / 16);
    switch (this.#file) {
      case "Q2_K":
        return "Q3_K";
      case "Q3_K_M":
        if (isFirst) return "Q5_K";
        return !isFalcon || more ? "Q4_K" : "Q3_K";
      case "IQ3_M":
        return isEarly || (experts === EIGHT && more) ? "Q4_K" : this.#main;
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
    const types = experts === EIGHT ? ATTENTION_OUTPUT_OF_EIGHT : ATTENTION_OUTPUT;
    return types[this.#file] ?? this.#main;
  }

  /** The block of a tensor: of experts by its name, since theirs are not in order. */
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

const ATTENTION_OUTPUT_OF_EIGHT: Readonly<Record<string, string>> = Object.fromEntries(
  ["Q2_K", "Q3_K_S", "Q3_K_M", "IQ4_NL", "Q4_K_S", "Q4_K_M", "IQ3_S", "IQ3_M", "IQ4_XS"].map((file) => [
    file,
    "Q5_K",
  ]),
);

function isExpert(name: string): boolean {
  return name.includes("ffn_up") || name.includes("ffn_gate");
}

/** The first and the last eighth of the blocks, and every third in between. */
function deservesMore(index: number, count: number): boolean {
  const eighth = Math.floor(count / 8);
  return index < eighth || index >= Math.floor((7 * count) / 8) || (index - eighth) % 3 === 2;
}

/** Blocks of the models that llama.cpp calls 70B, by architecture. */
const BLOCKS_OF_70B: Readonly<Record<string, number>> = {
  deci: 80,
  jais2: 68,
  llama: 80,
  "llama-embed": 80,
  olmo: 80,
  qwen2: 80,
};

function isOfType70B({ architecture, blocks, headsPerKey }: QuantizedModel): boolean {
  // A llama of 80 blocks whose heads have keys of their own is a 65B.
  const is65B = architecture.startsWith("llama") && headsPerKey === 1;
  return BLOCKS_OF_70B[architecture] === blocks && !is65B;
}
