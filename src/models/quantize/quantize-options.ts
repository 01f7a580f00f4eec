import type { Model } from "../model.ts";

export interface QuantizeOptions {
  /** Name of the new model; one that was created before is replaced. */
  readonly alias: string;
  /** Text of a Modelfile: its base is quantized, and the rest is kept. Relative paths in it are an error. */
  readonly modelfile: string;
  /** Such as "Q4_K_M". */
  readonly quantization: string;
  /** Whether weights that are quantized already may be quantized again, which costs quality. */
  readonly mayRequantize: boolean;
}

export interface QuantizeProgress {
  /** Quantization of the base. */
  readonly from: string;
  readonly to: string;
  /** Bytes of the new file that are written. */
  readonly completedBytes: number;
  readonly totalBytes: number;
}

export interface QuantizedModel {
  readonly model: Model;
  /** Bytes of the weights before. */
  readonly sourceBytes: number;
  /** Bytes of the new file. */
  readonly sizeBytes: number;
  readonly bitsPerWeight: number;
  /** Tensors that have another type than the usual one, because its blocks do not divide their rows. */
  readonly fallbackTensors: number;
}
