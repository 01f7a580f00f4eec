import type { OutputFormat } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { made } from "../schema/grammar-work.ts";
import { checkLongGbnf, TextGrammarError } from "../schema/text-grammar.ts";
import type { RequestedFormat } from "./inference.ts";
import type { MakeGrammar } from "./make-grammar.ts";

/** The choices of a request have one format, of which one grammar is made, or which is checked once. */
const formats = new WeakMap<RequestedFormat, Promise<OutputFormat>>();

/**
 * Makes a grammar of what a text must be, and reads a long one of a request, before anything is done for it.
 * @throws ServiceError invalid_parameter when no grammar can say it, or llama.cpp could not read it
 */
export async function readyFormat(format: RequestedFormat, makeGrammar: MakeGrammar): Promise<OutputFormat> {
  if (format.type !== "grammar" && format.type !== "texts") return format;
  const ready = formats.get(format) ?? makeReady(format, makeGrammar);
  formats.set(format, ready);
  return await ready;
}

async function makeReady(
  format: Extract<RequestedFormat, { type: "grammar" | "texts" }>,
  makeGrammar: MakeGrammar,
): Promise<OutputFormat> {
  const { param = "grammar" } = format;
  try {
    if (format.type === "grammar") {
      await checkLongGbnf(format.grammar);
      return format;
    }
    const { language, given } = format;
    const { grammar = "" } = made(await makeGrammar({ kind: "texts", language, given }));
    return { type: "grammar", grammar, param };
  } catch (cause) {
    if (!(cause instanceof TextGrammarError)) throw cause;
    throw new ServiceError("invalid_parameter", `${param}: cannot be enforced: ${cause.message}.`, {
      param,
      cause,
    });
  }
}
