import { setFlagsFromString } from "node:v8";
import { onParentGone } from "../channel/parent-channel.ts";
import { skipLanguages } from "../../launch/skip-languages.mjs";
import { isRestricted, UNRESTRICTED_EXIT_CODE } from "../child-process.ts";

/**
 * The entry of an engine process, which has one model and may only read its files. The main thread only passes messages
 * on; llama.cpp runs in a worker, so that the process notices the end of the daemon while a model computes.
 *
 * Arguments: file URL of llama.cpp's WASM, largest heap in bytes, and for an engine that uses a GPU the path of Dawn's
 * entry file and the longest wait for the GPU in milliseconds.
 */

// Without its restrictions, an engine must not parse any file.
if (!isRestricted()) process.exit(UNRESTRICTED_EXIT_CODE);

/**
 * Bytes of machine code that a WASM function executes before V8 optimizes it. With V8's default, V8 also optimizes code
 * that only loading uses and that has finished by the time the optimized code is ready. Kernels reach this budget
 * quickly.
 */
const TIERING_BUDGET = 400_000_000;

setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`);
// Functions are validated when they are first called; most never are.
setFlagsFromString("--wasm-lazy-validation");

/** An engine must not outlive its daemon. A signal ends it even when a busy worker would delay an exit. */
onParentGone(() => {
  process.kill(process.pid, "SIGKILL");
  // The first process of a PID namespace cannot kill itself with a signal.
  process.abort();
});

// V8 flags and language settings apply to what is loaded after them.
skipLanguages();
await import("./serve-daemon.ts");
