import { setFlagsFromString } from "node:v8";
import { endWithParent } from "../channel/parent-channel.ts";
import { skipZodLocales } from "../../launch/skip-languages.mjs";
import { isRestricted, UNRESTRICTED_EXIT_CODE } from "../child-process.ts";

/**
 * Entry of an engine process, which serves one model and can only read its files. The main thread only forwards
 * messages. llama.cpp runs in a worker, so that the process notices the end of the daemon while the model computes.
 *
 * Arguments: file URL of llama.cpp's WASM, maximum heap in bytes, and for an engine with a GPU the path of Dawn's entry
 * file and the longest wait for the GPU in milliseconds.
 */

// An engine without its restrictions must not parse any file.
if (!isRestricted()) process.exit(UNRESTRICTED_EXIT_CODE);

/**
 * Bytes of machine code that a WASM function executes before V8 optimizes it. With its default, V8 would also optimize
 * functions that are used only while loading, and finish too late for them. Kernels reach this budget quickly.
 */
const TIERING_BUDGET = 400_000_000;

setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`);
// Validates functions when they are first called, which most never are.
setFlagsFromString("--wasm-lazy-validation");

endWithParent();

// V8 flags and the Zod setting only affect modules that are loaded after them.
skipZodLocales();
await import("./serve-daemon.ts");
