import type { Capabilities, GgufSummary, ModelSettings } from "../model.ts";

/** Templates that can present tools test a variable of this name: it is what callers of the template pass. */
const TOOLS_VARIABLE = /\btools\b/;
/** How templates of reasoning models mark, keep or switch the reasoning. */
const THINKING_MARKS = /enable_thinking|reasoning_content|<think>|<\/think>|\[THINK\]|<\|channel\|>analysis/;

/**
 * What a model can do: from its chat template (the one of its settings, when they bring one), its projector and,
 * above all, what its settings say outright.
 */
export function detectCapabilities(
  gguf: Pick<GgufSummary, "purpose" | "chatTemplate">,
  hasProjector: boolean,
  settings: Pick<ModelSettings, "template" | "thinking" | "toolFormat" | "capabilities">,
): Capabilities {
  const generates = gguf.purpose === "generate";
  const template = generates ? (settings.template ?? gguf.chatTemplate ?? "") : "";
  return {
    vision: generates && hasProjector,
    tools: generates && (settings.toolFormat !== undefined || TOOLS_VARIABLE.test(template)),
    thinking: generates && (settings.thinking?.enabled ?? THINKING_MARKS.test(template)),
    json: generates,
    ...settings.capabilities,
  };
}
