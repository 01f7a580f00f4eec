import { expectHash } from "./engine-image.ts";
import { link } from "./linker/link.ts";
import { FUNCTIONS, STOCK_SHA256 } from "./llama-cpp-build.ts";
import type { StockFunction } from "./changes.ts";

/** llama.cpp's functions that quantize and dequantize, which the stock module does not export. */
export const QUANTIZER_FUNCTIONS = [
  "quantize_row_q4_0_ref",
  "quantize_row_q4_1_ref",
  "quantize_row_q5_0_ref",
  "quantize_row_q5_1_ref",
  "quantize_row_q8_0_ref",
  "quantize_row_q2_K_ref",
  "quantize_row_q3_K_ref",
  "quantize_row_q4_K_ref",
  "quantize_row_q5_K_ref",
  "quantize_row_q6_K_ref",
  "quantize_row_tq1_0_ref",
  "quantize_row_tq2_0_ref",
  "quantize_row_mxfp4_ref",
  "quantize_row_iq4_nl_impl",
  "quantize_iq4_xs",
  "quantize_iq3_s",
  "iq3xs_init_impl",
  "ggml_validate_row_data",
  "ggml_fp16_to_fp32_row",
  "ggml_cpu_bf16_to_fp32",
  "ggml_cpu_fp32_to_fp16",
  "ggml_cpu_fp32_to_bf16",
  "dequantize_row_q4_0",
  "dequantize_row_q4_1",
  "dequantize_row_q5_0",
  "dequantize_row_q5_1",
  "dequantize_row_q8_0",
  "dequantize_row_q2_K",
  "dequantize_row_q3_K",
  "dequantize_row_q4_K",
  "dequantize_row_q5_K",
  "dequantize_row_q6_K",
  "dequantize_row_tq1_0",
  "dequantize_row_tq2_0",
  "dequantize_row_mxfp4",
  "dequantize_row_iq4_nl",
  "dequantize_row_iq4_xs",
  "dequantize_row_iq3_xxs",
  "dequantize_row_iq3_s",
  "dequantize_row_iq2_xxs",
  "dequantize_row_iq2_xs",
  "dequantize_row_iq2_s",
  "dequantize_row_iq1_s",
  "dequantize_row_iq1_m",
] as const satisfies readonly StockFunction[];

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
