// @ts-check
import module from "node:module";

/** How zod's modules name the one that loads its messages in sixty languages. */
const LANGUAGES = "../locales/index.js";
const ZOD = "/node_modules/zod/";
const NOTHING = "data:text/javascript,";

/**
 * Lets zod, which is imported after this, load without its messages in sixty languages: they are two thirds of its
 * modules, and an eighth of what a command takes to start. We use the English ones, which it loads by themselves.
 */
export function skipLanguages() {
  module.registerHooks?.({
    resolve(specifier, context, nextResolve) {
      return specifier === LANGUAGES && context.parentURL?.includes(ZOD)
        ? { url: NOTHING, format: "module", shortCircuit: true }
        : nextResolve(specifier, context);
    },
  });
}
