import type { GenerationEvent, ToolDefinition } from "../../engine/protocol/generation.ts";
import { CallFold } from "../collect-answer.ts";
import {
  answerCheck,
  compileForm,
  llamaSchemas,
  type CompileGrammar,
  refuseIgnored,
  type TextCheck,
} from "../schema-compiler.ts";
import type { ResolvedTools } from "./resolve-tools.ts";

/** Checks of a call's arguments, by the name of the tool. */
export type CallChecks = ReadonlyMap<string, TextCheck>;

/**
 * Determines how optional calls are kept to their tools' schemas. In the format of the model's template, llama.cpp's
 * grammar enforces a part of the schema; in a TOOLFORMAT, nothing is enforced. For strict tools the missing keywords
 * are checked, for others there is a warning.
 * @throws ServiceError invalid_parameter for a strict tool whose schema cannot be checked
 */
export async function callChecks(
  resolved: ResolvedTools | undefined,
  compileGrammar: CompileGrammar,
): Promise<{ readonly checks: CallChecks; readonly warnings: readonly string[] }> {
  const checks = new Map<string, TextCheck>();
  const warnings: string[] = [];
  // The engine does not parse calls in these formats.
  const isText = resolved?.calls?.kind === "tagged" || resolved?.calls?.kind === "written";
  const tools = (resolved?.nativeTools ?? []).filter(({ parameters }) => parameters);
  const all = await llamaSchemas(
    tools.map(({ parameters }) => parameters),
    compileGrammar,
  );
  for (const [at, tool] of tools.entries()) {
    const { dropped = [], ignored = [] } = all[at] ?? {};
    const missing = [...dropped, ...ignored];
    if (tool.strict === true) {
      if (missing.length > 0 || isText) checks.set(tool.name, await checkOf(tool, compileGrammar));
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

async function checkOf(tool: ToolDefinition, compileGrammar: CompileGrammar): Promise<TextCheck> {
  const form = { type: "calls", tools: [tool] } as const;
  const compiled = await compileForm(form, compileGrammar);
  refuseIgnored(form, compiled);
  const check = answerCheck(form, compileGrammar);
  return async (text) => await check(`{"name":${JSON.stringify(tool.name)},"arguments":${text}}`);
}

/** Checks the calls of an answer; returns the first problem, or undefined. */
export async function checkCalls(
  events: Iterable<GenerationEvent>,
  checks: CallChecks,
): Promise<string | undefined> {
  const fold = new CallFold();
  for (const event of events) fold.add(event);
  for (const { name, arguments: text } of fold.calls) {
    const failure = await checks.get(name)?.(text);
    if (failure !== undefined) return `the arguments of ${name}: ${failure}`;
  }
  return undefined;
}
