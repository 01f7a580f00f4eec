import type { GenerationEvent, ToolDefinition } from "../../engine/protocol/generation.ts";
import {
  checkOfForm,
  compileForm,
  type MakeGrammar,
  missingKeywords,
  refuseGap,
  type TextCheck,
} from "../schema-compiler.ts";
import type { ResolvedTools } from "./resolve-tools.ts";

/** By the names of tools: what is wrong with the arguments of a call. */
export type CallChecks = ReadonlyMap<string, TextCheck>;

/**
 * How calls that the model may make are kept to their tools' schemas. In the format of the model's template, the engine
 * keeps what llama.cpp makes of a schema; in one of TOOLFORMAT, nothing. For a strict tool the rest is checked, for
 * others it is told.
 * @throws ServiceError invalid_parameter for a strict tool whose schema cannot be kept
 */
export async function callChecks(
  resolved: ResolvedTools | undefined,
  makeGrammar: MakeGrammar,
): Promise<{ readonly checks: CallChecks; readonly warnings: readonly string[] }> {
  const checks = new Map<string, TextCheck>();
  const warnings: string[] = [];
  // Calls in these formats are text to the engine.
  const isText = resolved?.calls?.kind === "tagged" || resolved?.calls?.kind === "written";
  const tools = (resolved?.chosen ?? []).filter(({ parameters }) => parameters);
  const all = await missingKeywords(
    tools.map(({ parameters }) => parameters),
    makeGrammar,
  );
  for (const [at, tool] of tools.entries()) {
    const { dropped = [], lost = [] } = all[at] ?? {};
    const missing = [...dropped, ...lost];
    if (tool.strict === true) {
      if (missing.length > 0 || isText) checks.set(tool.name, await checkOf(tool, makeGrammar));
      continue;
    }
    for (const { path, keyword } of isText ? [] : missing) {
      warnings.push(`tool ${tool.name}: ${path === "" ? keyword : `${path}.${keyword}`} is not enforced`);
    }
  }
  if (isText && tools.some(({ strict }) => strict !== true)) {
    warnings.push("the arguments of calls are not enforced, because the model writes its calls as text");
  }
  return { checks, warnings };
}

async function checkOf(tool: ToolDefinition, makeGrammar: MakeGrammar): Promise<TextCheck> {
  const form = { type: "calls", tools: [tool] } as const;
  const compiled = await compileForm(form, makeGrammar);
  refuseGap(form, compiled);
  const check = checkOfForm(form, makeGrammar);
  return async (text) => await check(`{"name":${JSON.stringify(tool.name)},"arguments":${text}}`);
}

/** What is wrong with the calls of an answer; undefined if they fit. */
export async function checkCalls(
  events: Iterable<GenerationEvent>,
  checks: CallChecks,
): Promise<string | undefined> {
  const calls = new Map<number, { name: string; text: string }>();
  for (const event of events) {
    if (event.type === "tool-call-start") calls.set(event.index, { name: event.name, text: "" });
    const call = event.type === "tool-call-delta" ? calls.get(event.index) : undefined;
    if (call && event.type === "tool-call-delta") call.text += event.arguments;
  }
  for (const { name, text } of calls.values()) {
    const failure = await checks.get(name)?.(text);
    if (failure !== undefined) return `the arguments of ${name}: ${failure}`;
  }
  return undefined;
}
