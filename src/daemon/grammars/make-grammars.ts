import { parentPort } from "node:worker_threads";
import { type GrammarWork, compileGrammar } from "../../grammar/grammar-work.ts";

/** Entry of the thread that {@link GrammarThread} starts. */
parentPort?.on("message", (work: GrammarWork) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  parentPort?.postMessage(compileGrammar(work));
});
