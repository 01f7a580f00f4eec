import { ServiceError } from "../../errors/service-error.ts";
import type { Model } from "../model.ts";

export interface QuantizeOptions {
  /** Name of the new model; one that was created before is replaced. */
  readonly alias: string;
  /** Text of a Modelfile whose base is quantized. Relative paths are an error. */
  readonly modelfile: string;
  /** Quantization of the new model, such as "Q4_K_M". */
  readonly quantization: string;
  /** Allows quantized weights to be quantized again, which costs quality. */
  readonly mayRequantize: boolean;
}

export interface QuantizeProgress {
  /** Quantization of the base. */
  readonly from: string;
  readonly to: string;
  /** Bytes of the new file written so far. */
  readonly completedBytes: number;
  readonly totalBytes: number;
}

export interface QuantizedModel {
  readonly model: Model;
  /** Bytes of the original weights. */
  readonly sourceBytes: number;
  /** Bytes of the new file. */
  readonly sizeBytes: number;
  readonly bitsPerWeight: number;
  /** Number of tensors with a fallback type, because the requested one does not fit their rows. */
  readonly fallbackTensors: number;
}

/** A quantization that models can be converted to. */
export interface FileType {
  /** Name in llama-quantize. */
  readonly name: string;
  /** `general.file_type`, from enum llama_ftype of llama.h. */
  readonly number: number;
  readonly main: string;
}

const fileType = (name: string, number: number, main = name): FileType => ({ name, number, main });

/** Quantizations that llama.cpp can write without an importance matrix and the engine can read. */
export const FILE_TYPES: readonly FileType[] = [
  fileType("F16", 1),
  fileType("BF16", 32),
  fileType("Q8_0", 7),
  fileType("Q6_K", 18),
  fileType("Q5_K_M", 17, "Q5_K"),
  fileType("Q5_K_S", 16, "Q5_K"),
  fileType("Q5_1", 9),
  fileType("Q5_0", 8),
  fileType("Q4_K_M", 15, "Q4_K"),
  fileType("Q4_K_S", 14, "Q4_K"),
  fileType("Q4_1", 3),
  fileType("Q4_0", 2),
  fileType("IQ4_NL", 25),
  fileType("IQ4_XS", 30),
  fileType("MXFP4_MOE", 38, "MXFP4"),
  fileType("Q3_K_L", 13, "Q3_K"),
  fileType("Q3_K_M", 12, "Q3_K"),
  fileType("Q3_K_S", 11, "Q3_K"),
  fileType("IQ3_M", 27, "IQ3_S"),
  fileType("IQ3_S", 26),
  fileType("Q2_K", 10),
  fileType("TQ2_0", 37),
  fileType("TQ1_0", 36),
];

/** Other names that llama-quantize accepts. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  Q5_K: "Q5_K_M",
  Q4_K: "Q4_K_M",
  Q3_K: "Q3_K_M",
};

/** Quantizations that need an importance matrix to be usable. */
const NEEDS_IMPORTANCE_MATRIX = /^(?:IQ1_[SM]|IQ2_(?:XXS|XS|S|M)|IQ3_(?:XXS|XS)|Q2_K_S)$/;

/**
 * Finds a quantization by name, in any case.
 * @throws ServiceError invalid_parameter
 */
export function findFileType(name: string): FileType {
  const wanted = name.toUpperCase();
  const found = FILE_TYPES.find((each) => each.name === (OTHER_NAMES[wanted] ?? wanted));
  if (found) return found;
  const names = FILE_TYPES.map((each) => each.name).join(", ");
  const reason = NEEDS_IMPORTANCE_MATRIX.test(wanted)
    ? `${wanted} needs an importance matrix, which cannot be given here`
    : `${JSON.stringify(name.slice(0, 40))} is not a quantization`;
  throw new ServiceError("invalid_parameter", `${reason}; choose one of ${names}.`, {
    param: "quantization",
  });
}
