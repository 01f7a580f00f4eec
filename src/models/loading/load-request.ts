import { isDeepStrictEqual } from "node:util";
import type { EngineSpec } from "../../engine/protocol/engine-spec.ts";
import type { ModelRecord } from "../registry/model-record.ts";

/** Memory that engines take, or may take. */
export interface MemoryNeeds {
  /** Bytes of the machine's memory. */
  readonly bytes: number;
  /** Bytes of the GPU's. */
  readonly gpuBytes: number;
}

/** How a model is to be loaded: everything has been looked up and checked. */
export interface LoadRequest extends MemoryNeeds {
  readonly record: ModelRecord;
  readonly spec: EngineSpec;
  /**
   * What the engine would need if it were started otherwise.
   * @throws ServiceError insufficient_memory for what no engine can hold
   */
  readonly needsOf: (spec: EngineSpec) => MemoryNeeds;
  /** Bytes that the heap of an engine with this specification may grow to; absent: as far as it can. */
  readonly heapLimitOf?: ((spec: EngineSpec) => number) | undefined;
  /** The same load, planned again beside what has been loaded meanwhile. */
  readonly replan: () => Promise<LoadRequest>;
  /** Milliseconds of idleness after which it is unloaded; Infinity: never. */
  readonly keepAliveMs: number;
  /** Idle models may be unloaded to make room. */
  readonly mayEvict: boolean;
}

/** True when both ask for the same engine. */
export function asksForSame(a: LoadRequest, b: LoadRequest): boolean {
  return isDeepStrictEqual(a.spec, b.spec);
}
