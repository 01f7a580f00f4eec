import type { Engine } from "../engine/engine.ts";
import type { GenerationInput, GenerationRequest } from "../engine/protocol/generation.ts";
import { ServiceError } from "../errors/service-error.ts";
import { assumedTokens, hasMedia, neededTokens, reservedTokens } from "./reserved-tokens.ts";

/** Longest text that is counted: all slots wait for that, about a third of a second. A longer one hardly fits beside others. */
const MAX_COUNTED_CHARACTERS = 256 * 1024;

/** How much longer a prompt may become in the words of a template than in JSON. */
const TEMPLATE_GROWTH = 1.25;

/** As much as templates indent the schemas of tools. */
const INDENT = 4;

/**
 * Tokens of context that a generation is admitted with. A long prompt has several bytes per token, so that one token per byte
 * would often have it wait for requests that it fits beside; if others run, it is counted before.
 */
export async function admissionTokens(
  engine: Pick<Engine, "info" | "spec" | "tokenize">,
  request: GenerationRequest,
  isBusy: boolean,
  signal: AbortSignal,
): Promise<number> {
  const context = { ...engine.info, slots: engine.spec.slots };
  const reserved = reservedTokens(request, context);
  const { input } = request;
  const isSmall = reserved <= context.contextTokens / context.slots;
  if (!isBusy || isSmall || hasMedia(input)) return reserved;
  const text = documentOf(input);
  if (text.length > MAX_COUNTED_CHARACTERS) return reserved;
  try {
    const { length } = await engine.tokenize(text, { addSpecial: true, parseSpecial: false }, signal);
    const promptTokens = assumedTokens(input, Math.ceil(length * TEMPLATE_GROWTH));
    return Math.min(reserved, neededTokens(request, promptTokens, context));
  } catch (error) {
    // The stock WASM has no tokenizer, and a text may be refused; what is wrong with it, the engine says better.
    if (error instanceof ServiceError) return reserved;
    throw error;
  }
}

function documentOf(input: GenerationInput): string {
  if (input.kind === "prompt") return input.prompt;
  const { messages, tools, templateVariables } = input;
  return JSON.stringify([messages, tools, templateVariables], undefined, INDENT);
}
