import { beforeEach, describe, expect, it } from "vitest";
import { OFFSETS } from "../../../wasm/llama-cpp-build.ts";
import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import { KernelsAlone } from "../../support/kernels-alone.ts";

const MONOTONIC = 1;
const REALTIME = 0;
const SLOT = 4096n;

let reads: number;
let kernels: KernelsAlone;
/** Calls of llama.cpp while a sampler accepts the tokens of a prompt. */
let tell: (slot: bigint) => void;

beforeEach(async () => {
  reads = 0;
  tell = () => {};
  kernels = await KernelsAlone.start(["kernel_clock", "kernel_init_sampler", "kernel_update_slots"], {
    original_clock: (_which: number, at: bigint) => {
      reads += 1;
      kernels.view.setBigInt64(Number(at), BigInt(reads), true);
      kernels.view.setBigInt64(Number(at) + 8, BigInt(reads) * 1000n, true);
      return 0;
    },
    original_init_sampler: (slot: bigint) => tell(slot),
    original_update_slots: () => {},
  });
});

function time(which = MONOTONIC): [bigint, bigint] {
  const at = kernels.place(16);
  expect(kernels.call("kernel_clock", which, BigInt(at))).toBe(0);
  return [kernels.view.getBigInt64(at, true), kernels.view.getBigInt64(at + 8, true)];
}

describe("the clock", () => {
  it("is read once while a sampler accepts a prompt, and runs again afterwards", () => {
    const accepted: bigint[] = [];
    tell = (slot) => {
      accepted.push(slot);
      for (let token = 0; token < 100; token += 1) expect(time()).toEqual([1n, 1000n]);
    };
    kernels.call("kernel_init_sampler", SLOT);
    expect(accepted).toEqual([SLOT]);
    expect(reads).toBe(1);
    expect([time(), time()]).toEqual([
      [2n, 2000n],
      [3n, 3000n],
    ]);
  });

  it("of the time of day is not frozen", () => {
    const times: [bigint, bigint][] = [];
    tell = () => {
      times.push(time(REALTIME), time(REALTIME));
    };
    kernels.call("kernel_init_sampler", SLOT);
    expect(times).toEqual([
      [2n, 2000n],
      [3n, 3000n],
    ]);
  });

  it("runs again in the next step after an exception in a sampler", () => {
    tell = () => {
      throw new Error("no memory");
    };
    expect(() => kernels.call("kernel_init_sampler", SLOT)).toThrow("no memory");
    const server = kernels.place(65_536);
    kernels.pointer(server + OFFSETS["server_context_impl.ctx_tgt"].at, kernels.place(4096));
    expect(kernels.view.getUint8(MEMORY_CELLS.heldClock)).toBe(1);
    kernels.call("kernel_update_slots", BigInt(server));
    expect([time(), time()]).toEqual([
      [2n, 2000n],
      [3n, 3000n],
    ]);
  });
});
