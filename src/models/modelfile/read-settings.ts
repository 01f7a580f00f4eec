import { parseDecimal } from "../../config/config-values.ts";
import type { Capabilities, ModelSettings, ToolFormat } from "../model.ts";
import { isKnownParameter, type MutableParameters, setParameter } from "./parameters.ts";
import { type Instruction, modelfileError, readBoolean } from "./parse-instructions.ts";
import { chatTemplate } from "./template/chat-template.ts";

/** Maximum of GPU_LAYERS; the deepest models have a few hundred layers. */
const MAX_GPU_LAYERS = 100_000;

/** Maximum MESSAGE directives, which are a part of every chat's prompt. */
const MAX_MESSAGES = 256;
const MESSAGE_ROLES = ["system", "user", "assistant"] as const;

const CAPABILITIES: readonly (keyof Capabilities)[] = ["json", "tools", "thinking", "vision", "audio"];

/**
 * Reads the settings in a Modelfile, which name no files, so that this also works in web pages.
 * @throws ServiceError invalid_modelfile with the line
 */
export function readSettings(instructions: readonly Instruction[]): ModelSettings {
  const all = (directive: Instruction["directive"]): Instruction[] =>
    instructions.filter((instruction) => instruction.directive === directive);
  const one = (directive: Instruction["directive"]): Instruction | undefined => all(directive)[0];
  const parameters: MutableParameters = {
    sampling: {},
    stop: [],
    contextSize: undefined,
    maxTokens: undefined,
    load: {},
  };
  for (const { line, key, text } of all("PARAMETER")) {
    if (!isKnownParameter(key)) continue;
    const problem = setParameter(parameters, key, text);
    if (problem !== undefined) throw modelfileError(line, `PARAMETER ${key}: ${problem}.`);
  }
  const template = one("TEMPLATE");
  const gpuLayers = one("GPU_LAYERS");
  const flashAttention = one("FLASH_ATTENTION");
  return {
    system: one("SYSTEM")?.text,
    template: template && chatTemplate(template.text, template.line),
    ...parameters,
    gpuLayers: gpuLayers && readGpuLayers(gpuLayers),
    load: {
      ...parameters.load,
      ...(flashAttention && { flashAttention: readFlashAttention(flashAttention) }),
    },
    thinking: readThinking(all("THINKING")),
    toolFormat: readToolFormat(all("TOOLFORMAT")),
    capabilities: readCapabilities(all("CAPABILITY")),
    ...firstMessages(all("MESSAGE")),
  };
}

function firstMessages(instructions: readonly Instruction[]): Pick<ModelSettings, "messages"> {
  const messages = instructions.map(({ line, key, text }) => {
    const role = MESSAGE_ROLES.find((candidate) => candidate === key);
    if (!role) throw modelfileError(line, `MESSAGE needs a role, one of ${MESSAGE_ROLES.join(", ")}.`);
    return { role, content: text };
  });
  const surplus = instructions[MAX_MESSAGES];
  if (surplus) throw modelfileError(surplus.line, `there are more than ${MAX_MESSAGES} messages.`);
  return messages.length > 0 ? { messages } : {};
}

function readGpuLayers({ line, text }: Instruction): number {
  const layers = parseDecimal(text);
  if (layers !== undefined && Number.isInteger(layers) && layers >= -1 && layers <= MAX_GPU_LAYERS)
    return layers;
  throw modelfileError(line, "GPU_LAYERS must be a number of layers: 0 for none, -1 for all.");
}

function readFlashAttention({ line, text }: Instruction): "auto" | "true" | "false" {
  const mode = text.toLowerCase();
  if (mode === "auto" || mode === "true" || mode === "false") return mode;
  throw modelfileError(line, "FLASH_ATTENTION must be auto, true or false.");
}

function readCapabilities(instructions: readonly Instruction[]): Partial<Capabilities> {
  const flags = instructions.map(({ line, key, text }) => {
    const name = CAPABILITIES.find((capability) => capability === key);
    if (!name)
      throw modelfileError(
        line,
        `CAPABILITY does not know ${JSON.stringify(key)}; it knows ${CAPABILITIES.join(", ")}.`,
      );
    return [name, readBoolean(line, `CAPABILITY ${key}`, text)] as const;
  });
  return Object.fromEntries(flags);
}

/** Default tags around reasoning, which nearly all reasoning models use. */
const THINK_TAGS = { start: "<think>", end: "</think>" };

const THINKING_KEYS = ["start", "end", "enabled"] as const;
const TOOL_FORMAT_KEYS = ["style", "call_start", "call_end", "result_start", "result_end"] as const;

/** Markers of model families, from their chat templates. */
const TOOL_FORMAT_STYLES: Readonly<Record<string, Omit<ToolFormat, "style">>> = {
  hermes: markers("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
  qwen: markers("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
  mistral: markers("[TOOL_CALLS]", "", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
};

/** Reads THINKING: the tags around reasoning, and its default for requests. */
function readThinking(instructions: readonly Instruction[]): ModelSettings["thinking"] {
  const last = instructions.at(-1);
  if (!last) return undefined;
  const { start, end, enabled } = byKey("THINKING", THINKING_KEYS, instructions);
  if ((start === undefined) !== (end === undefined)) {
    throw modelfileError(last.line, "THINKING needs both start and end, or neither.");
  }
  for (const marker of [start, end]) {
    if (marker?.text === "") throw modelfileError(marker.line, `THINKING ${marker.key} must not be empty.`);
  }
  return {
    start: start?.text ?? THINK_TAGS.start,
    end: end?.text ?? THINK_TAGS.end,
    enabled: enabled ? readBoolean(enabled.line, "THINKING enabled", enabled.text) : true,
  };
}

/** Reads TOOLFORMAT: the markers of a known style, or custom ones. */
function readToolFormat(instructions: readonly Instruction[]): ToolFormat | undefined {
  const last = instructions.at(-1);
  if (!last) return undefined;
  const found = byKey("TOOLFORMAT", TOOL_FORMAT_KEYS, instructions);
  const style = found.style?.text.toLowerCase() ?? "custom";
  const known = Object.hasOwn(TOOL_FORMAT_STYLES, style) ? TOOL_FORMAT_STYLES[style] : undefined;
  const callStart = found.call_start?.text ?? known?.callStart;
  const callEnd = found.call_end?.text ?? known?.callEnd;
  const resultStart = found.result_start?.text ?? known?.resultStart;
  const resultEnd = found.result_end?.text ?? known?.resultEnd;
  // Without opening markers, calls and results could not be distinguished from other text.
  if (!callStart || callEnd === undefined || !resultStart || resultEnd === undefined) {
    throw modelfileError(
      last.line,
      `TOOLFORMAT needs call_start, call_end, result_start and result_end, or a style of ${Object.keys(TOOL_FORMAT_STYLES).join(", ")}.`,
    );
  }
  return { style, callStart, callEnd, resultStart, resultEnd };
}

function markers(
  callStart: string,
  callEnd: string,
  resultStart: string,
  resultEnd: string,
): Omit<ToolFormat, "style"> {
  return { callStart, callEnd, resultStart, resultEnd };
}

function byKey<Key extends string>(
  directive: string,
  keys: readonly Key[],
  instructions: readonly Instruction[],
): { readonly [K in Key]?: Instruction } {
  const found: { [K in Key]?: Instruction } = {};
  for (const instruction of instructions) {
    const key = keys.find((candidate) => candidate === instruction.key);
    if (key === undefined) {
      const shown = JSON.stringify(instruction.key.slice(0, 40));
      throw modelfileError(
        instruction.line,
        `${directive} does not know ${shown}; it knows ${keys.join(", ")}.`,
      );
    }
    found[key] = instruction;
  }
  return found;
}
