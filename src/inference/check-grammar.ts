import type { OutputFormat } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { checkLongGbnf, TextGrammarError } from "../schema/text-grammar.ts";

/** The choices of a request have one format, which is checked once. */
const checks = new WeakMap<OutputFormat, Promise<void>>();

/**
 * Reads a long grammar of a request before anything is done for it.
 * @throws ServiceError invalid_parameter when llama.cpp could not read it
 */
export async function checkGrammar(format: OutputFormat): Promise<void> {
  if (format.type !== "grammar") return;
  const check = checks.get(format) ?? checkLongGbnf(format.grammar);
  checks.set(format, check);
  try {
    await check;
  } catch (cause) {
    if (!(cause instanceof TextGrammarError)) throw cause;
    const { param = "grammar" } = format;
    throw new ServiceError("invalid_parameter", `${param}: cannot be enforced: ${cause.message}.`, {
      param,
      cause,
    });
  }
}
