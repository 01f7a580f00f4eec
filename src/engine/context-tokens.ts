import type { EngineSpec } from "./protocol/engine-spec.ts";

/** Tokens that the KV cache of an engine holds: one context when the slots share it, else one for each slot. */
export function contextTokens({
  contextSize,
  slots,
  sharedContext,
}: Pick<EngineSpec, "contextSize" | "slots" | "sharedContext">): number {
  return sharedContext ? contextSize : contextSize * slots;
}
