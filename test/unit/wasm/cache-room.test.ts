import { describe, expect, it } from "vitest";
import { KernelsAlone } from "../../support/kernels-alone.ts";

/** llama_ubatch and llama_kv_cache::slot_info. */
const BATCH_BYTES = 104;
const SLOT_BYTES = 56;
const CELLS_AT = 32;
const CACHE = 7n;

/** Calls the kernel for a number of batches, in a cache with or without free cells. */
async function prepare(
  batches: number,
  hasFreeCells: boolean,
): Promise<{ log: string[]; result: number[]; cells: bigint | undefined }> {
  const log: string[] = [];
  const kernels = await KernelsAlone.start(["kernel_prepare_cache"], {
    original_prepare_cache: () => log.push("try all"),
    allocate_memory: (bytes: bigint) => {
      log.push(`allocate ${bytes}`);
      return BigInt(kernels.place(Number(bytes)));
    },
    free_memory: () => log.push("free"),
    find_cache_slot: (slot: bigint, cache: bigint, batch: bigint) => {
      log.push(`find for ${batch - BigInt(first)} in ${cache}`);
      if (!hasFreeCells) return;
      kernels.view.setBigUint64(Number(slot) + CELLS_AT, 4096n, true);
      kernels.view.setBigUint64(Number(slot) + CELLS_AT + 8, 4120n, true);
    },
  });
  const [slots, list, first] = [kernels.place(24), kernels.place(24), kernels.place(batches * BATCH_BYTES)];
  for (const at of [0, 8, 16]) kernels.pointer(slots + at, 99);
  kernels.pointer(list, first);
  kernels.pointer(list + 8, first + batches * BATCH_BYTES);
  kernels.call("kernel_prepare_cache", BigInt(slots), CACHE, BigInt(list));
  const result = [0, 8, 16].map((at) => Number(kernels.view.getBigUint64(slots + at, true)));
  const begin = result[0] ?? 0;
  const cells = begin > 99 ? kernels.view.getBigUint64(begin + CELLS_AT, true) : undefined;
  return { log, result, cells };
}

describe("the cache cells for a step", () => {
  it("are looked up once for a step of one batch, without a trial", async () => {
    const { log, result, cells } = await prepare(1, true);
    expect(log).toEqual([`allocate ${SLOT_BYTES}`, "find for 0 in 7"]);
    const [begin = 0, end, limit] = result;
    expect([end, limit]).toEqual([begin + SLOT_BYTES, begin + SLOT_BYTES]);
    expect(cells).toBe(4096n);
  });

  it("are none when the cache is full, and the result's memory is freed", async () => {
    const { log, result } = await prepare(1, false);
    expect(log).toEqual([`allocate ${SLOT_BYTES}`, "find for 0 in 7", "free"]);
    expect(result).toEqual([0, 0, 0]);
  });

  it.each([0, 2])("are left to llama.cpp for a step of %i batches", async (batches) => {
    expect((await prepare(batches, true)).log).toEqual(["try all"]);
  });
});
