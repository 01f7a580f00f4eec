import type { HostTensor } from "../../../test/support/host-tensors.ts";
import { OperatorHost, TENSOR } from "../../../test/support/operator-host.ts";
import { median } from "../daemon/statistics.ts";
import { timed } from "./timed.ts";

const FLASH_ATTENTION = 74;
/** Numbers of a key, and of a value. */
const WIDTH = 64;
/** KV heads: enough for a run that can be timed. */
const HEADS = 8;
const WORK_BYTES = 4 * 1024 * 1024;
/** Runs until V8 has replaced its baseline code. */
const WARM_UP_MS = 150;
const SLICES = 7;
const SCALE = 0.125;
const HALF = 0x3400;

/**
 * Speed of flash attention over a cache of so many tokens, without a mask.
 * @returns for each type of the cache, billions of multiplications and additions a second for each number of queries
 */
export async function measureAttention(
  queryCounts: readonly number[],
  tokens: number,
  milliseconds: number,
): Promise<Map<string, number[]>> {
  const host = await OperatorHost.start();
  const rates = new Map<string, number[]>();
  for (const type of ["F32", "F16", "Q8_0", "Q4_0"] as const) {
    const cache = cacheOf(type, tokens);
    const ofType = queryCounts.map((queries) => {
      const prepared = host.prepare({
        op: FLASH_ATTENTION,
        parameters: new Int32Array(new Float32Array([SCALE, 0, 0]).buffer),
        sources: [queriesOf(queries), cache, cache],
        ne: [WIDTH, HEADS, queries],
        workBytes: WORK_BYTES,
      });
      const run = (): boolean => prepared.run();
      if (!run()) throw new Error(`the kernels do not cover attention over ${tokens} tokens of ${type}`);
      timed(run, WARM_UP_MS);
      const times = Array.from({ length: SLICES }, () => timed(run, milliseconds / SLICES));
      return (2 * WIDTH * tokens * queries * HEADS) / median(times) / 1e6;
    });
    rates.set(type, ofType);
  }
  return rates;
}

function queriesOf(count: number): HostTensor {
  const data = Float32Array.from({ length: WIDTH * count * HEADS }, (_, index) => Math.sin(index));
  return { type: TENSOR.f32, ne: [WIDTH, count, HEADS], data };
}

function cacheOf(type: "F32" | "F16" | "Q8_0" | "Q4_0", tokens: number): HostTensor {
  const ne = [WIDTH, tokens, HEADS];
  const count = WIDTH * tokens * HEADS;
  if (type === "F32") return { type: TENSOR.f32, ne, data: new Float32Array(count).fill(0.25) };
  if (type === "F16") return { type: TENSOR.f16, ne, data: new Uint16Array(count).fill(HALF) };
  const bytes = type === "Q8_0" ? 34 : 18;
  const row = (WIDTH / 32) * bytes;
  const data = new Uint8Array(row * tokens * HEADS).fill(HALF >> 8);
  return {
    type: type === "Q8_0" ? TENSOR.q8_0 : TENSOR.q4_0,
    ne,
    nb: [bytes, row, row * tokens, row * tokens * HEADS],
    data,
  };
}
