import { expectHash } from "./engine-image.ts";
import { link } from "./linker/link.ts";
import { FUNCTIONS, STOCK_SHA256 } from "./llama-cpp-build.ts";
import type { StockFunction } from "./changes.ts";

/** Numbers of ggml's types. */
export const IQ3_S = 21;
export const IQ4_NL = 20;

/** Functions that convert a type to F32, by ggml's number of the type. Arguments: source, destination, number of weights. */
export const TO_F32: ReadonlyMap<number, StockFunction> = new Map([
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
export const FROM_F32: ReadonlyMap<number, StockFunction> = new Map([
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
  // Has other arguments; the quantizer calls it for each block.
  [IQ4_NL, "quantize_row_iq4_nl_impl"],
  [IQ3_S, "quantize_iq3_s"],
  [23, "quantize_iq4_xs"],
  [30, "ggml_cpu_fp32_to_bf16"],
  [34, "quantize_row_tq1_0_ref"],
  [35, "quantize_row_tq2_0_ref"],
  [39, "quantize_row_mxfp4_ref"],
]);

/** llama.cpp's functions that quantize and dequantize, which the stock module does not export. */
export const QUANTIZER_FUNCTIONS: readonly StockFunction[] = [
  ...TO_F32.values(),
  ...FROM_F32.values(),
  "iq3xs_init_impl",
  "ggml_validate_row_data",
];

/**
 * Builds the module that quantizes: the stock one, with {@link QUANTIZER_FUNCTIONS} exported by their names.
 * @throws EngineImageError when the file is not the pinned one
 */
export async function buildQuantizerImage(stock: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  await expectHash(stock, STOCK_SHA256, "llama.cpp's WebAssembly");
  return link(stock, {
    exports: Object.fromEntries(QUANTIZER_FUNCTIONS.map((name) => [name, FUNCTIONS[name]])),
  });
}
