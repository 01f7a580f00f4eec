import { readNumber } from "../../config/read-number.ts";
import type { Capabilities, ModelSettings } from "../model.ts";
import { type Instruction, modelfileError, readBoolean } from "./parse-instructions.ts";
import { isKnownParameter, type MutableParameters, setParameter } from "./parameters.ts";
import { chatTemplate } from "./template/chat-template.ts";
import { readThinking, readToolFormat } from "./text-marks.ts";

/** The deepest models have a few hundred layers. */
const MAX_GPU_LAYERS = 100_000;

/** Each of them is read again in every chat; examples are a few turns. */
const MAX_MESSAGES = 256;
const MESSAGE_ROLES = ["system", "user", "assistant"] as const;

const CAPABILITIES: readonly (keyof Capabilities)[] = ["json", "tools", "thinking", "vision", "audio"];

/**
 * The settings in a Modelfile, which say nothing of files: a page can have them too.
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
    sampling: parameters.sampling,
    maxTokens: parameters.maxTokens,
    ...(parameters.repetitionGuard !== undefined && { repetitionGuard: parameters.repetitionGuard }),
    ...(parameters.speculation !== undefined && { speculation: parameters.speculation }),
    stop: parameters.stop,
    contextSize: parameters.contextSize,
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
  const layers = readNumber(text);
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
