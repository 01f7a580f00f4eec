import { parentPort } from "node:worker_threads";
import { type GrammarWork, makeGrammar } from "../../schema/grammar-work.ts";

/** The thread that {@link GrammarThread} starts. */
parentPort?.on("message", (work: GrammarWork) => parentPort?.postMessage(makeGrammar(work)));
