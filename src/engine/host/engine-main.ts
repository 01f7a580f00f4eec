import { setFlagsFromString } from "node:v8";
import { onParentGone } from "../channel/parent-channel.ts";
import { skipLanguages } from "../../launch/skip-languages.mjs";
import { isFencedIn, UNFENCED_EXIT_CODE } from "../permission-model.ts";

/**
 * The entry of an engine process: one model, no rights but to read its files. The main thread only passes
 * messages; llama.cpp runs in a worker, so that the end of the daemon is noticed while a model computes.
 *
 * Arguments: the file URL of llama.cpp's WASM, the largest heap that it declares in bytes, and for an engine that
 * uses a GPU the path of Dawn's entry file and the longest wait for the GPU in milliseconds.
 */

// What would run without the walls that it was started with parses no file.
if (!isFencedIn()) process.exit(UNFENCED_EXIT_CODE);

/**
 * Machine code in bytes that a function of the WASM runs before V8 optimizes it. By default that is so little that V8
 * optimizes what only loading a model uses, which is long over when the better code is there: a third of the
 * instructions of a small model's start. What computes reaches this soon: with a model of 0.5B weights the load and the
 * first 32 tokens take as many instructions either way.
 */
const TIERING_BUDGET = 400_000_000;

setFlagsFromString(`--wasm-tiering-budget=${TIERING_BUDGET}`);
// Each function is checked before it first runs, not all 7,700 before any: most are never run.
setFlagsFromString("--wasm-lazy-validation");

/** An engine must not outlive its daemon. A signal ends it even where a busy worker would hold back an exit. */
onParentGone(() => {
  process.kill(process.pid, "SIGKILL");
  // The first process of a namespace cannot kill itself with a signal.
  process.abort();
});

// Both count for what is loaded after them.
skipLanguages();
await import("./serve-daemon.ts");
