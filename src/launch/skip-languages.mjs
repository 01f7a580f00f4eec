// @ts-check
import module from "node:module";

/** The import by which zod loads its messages in sixty languages. */
const LANGUAGES = "../locales/index.js";
const ZOD = "/node_modules/zod/";
const NOTHING = "data:text/javascript,";

/**
 * Makes zod, which is imported later, skip its messages in sixty languages, which are most of its modules and slow every
 * command's start. The English messages, which we use, are loaded separately.
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
