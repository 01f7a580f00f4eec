// @ts-check
import module from "node:module";

/** Import specifier by which zod loads its messages in sixty languages. */
const LANGUAGES = "../locales/index.js";
const ZOD = "/node_modules/zod/";
const NOTHING = "data:text/javascript,";

/**
 * Makes zod, which is imported later, skip its messages in sixty languages: they are most of its modules and slow down the
 * start of every command. The English messages are loaded separately.
 */
export function skipZodLocales() {
  module.registerHooks?.({
    resolve(specifier, context, nextResolve) {
      return specifier === LANGUAGES && context.parentURL?.includes(ZOD)
        ? { url: NOTHING, format: "module", shortCircuit: true }
        : nextResolve(specifier, context);
    },
  });
}
