import { isDeepStrictEqual } from "node:util";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import type { ModelRecord } from "../registry/model-record.ts";

/** How a model is to be loaded: everything has been looked up and checked. */
export interface LoadRequest {
  readonly record: ModelRecord;
  readonly spec: EngineSpec;
  /** Bytes that the engine is expected to need at most. */
  readonly bytes: number;
  /** Milliseconds of idleness after which it is unloaded; Infinity: never. */
  readonly keepAliveMs: number;
  /** Idle models may be unloaded to make room. */
  readonly mayEvict: boolean;
}

/** True when both ask for the same engine. */
export function asksForSame(a: LoadRequest, b: LoadRequest): boolean {
  return isDeepStrictEqual(a.spec, b.spec);
}
