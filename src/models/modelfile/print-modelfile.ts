import type { ModelSettings } from "../model.ts";
import type { ModelDefinition } from "./read-modelfile.ts";
import { listParameters } from "./parameters.ts";
import { quote } from "./parse-instructions.ts";
import type { UnusedDirective } from "./unused-directives.ts";

/** Prints a Modelfile that parses back to the same definition, with absolute paths. */
export function printModelfile(definition: ModelDefinition): string {
  const { from, settings, adapters, projector, draft, digest, license, author, unused } = definition;
  const lines = [
    `FROM ${from}`,
    ...line("DIGEST", digest && `sha256:${digest}`),
    ...adapters.map(
      ({ path, scale, name }) =>
        `ADAPTER ${path}${scale === 1 ? "" : ` ${scale}`}${name === undefined ? "" : ` AS ${name}`}`,
    ),
    ...line("VISION_PROJECTOR", projector),
    ...line("DRAFT", draft),
    ...line("GPU_LAYERS", settings.gpuLayers),
    ...line("FLASH_ATTENTION", settings.load.flashAttention),
    ...listParameters(settings).map(
      ([name, value]) => `PARAMETER ${name} ${typeof value === "string" ? quote(value) : value}`,
    ),
    ...text("SYSTEM", settings.system),
    ...text("TEMPLATE", settings.template),
    ...printThinking(settings.thinking),
    ...printToolFormat(settings.toolFormat),
    ...Object.entries(settings.capabilities).map(([name, flag]) => `CAPABILITY ${name} ${flag}`),
    ...(settings.messages ?? []).map(({ role, content }) => `MESSAGE ${role} ${quote(content)}`),
    ...unused.map(printUnused),
    ...text("AUTHOR", author),
    ...text("LICENSE", license),
  ];
  return `${lines.join("\n")}\n`;
}

function line(directive: string, value: string | number | undefined): string[] {
  return value === undefined ? [] : [`${directive} ${value}`];
}

function text(directive: string, value: string | undefined): string[] {
  return value === undefined ? [] : [`${directive} ${quote(value)}`];
}

function printUnused({ directive, key, text: value }: UnusedDirective): string {
  const name = key === "" ? directive : `${directive} ${key}`;
  return `${name} ${/^[\w.+-]+$/.test(value) ? value : quote(value)}`;
}

function printThinking(thinking: ModelSettings["thinking"]): string[] {
  if (!thinking) return [];
  const { start, end, enabled } = thinking;
  return [`THINKING start ${quote(start)}`, `THINKING end ${quote(end)}`, `THINKING enabled ${enabled}`];
}

function printToolFormat(format: ModelSettings["toolFormat"]): string[] {
  if (!format) return [];
  return [
    ...text("TOOLFORMAT style", format.style),
    ...text("TOOLFORMAT call_start", format.callStart),
    ...text("TOOLFORMAT call_end", format.callEnd),
    ...text("TOOLFORMAT result_start", format.resultStart),
    ...text("TOOLFORMAT result_end", format.resultEnd),
  ];
}
