import { beforeEach, describe, expect, test } from "vitest";
import { OFFSETS } from "../../../wasm/llama-cpp-build.ts";
import { GraphHost } from "../../support/graph-host.ts";
import {
  FALLBACK_MARK,
  hostMemory,
  linkHost,
  PROCESS_RESULT,
  STACK_TOP,
} from "../../support/kernel-host-module.ts";

const PAGES = 32;
/** ggml's number of the sum of two tensors. */
const ADD = 2;
/** Addresses of llama.cpp's structures, with sufficient distance. */
const place = (number: number): number => STACK_TOP + 4096 * number;
const [CONTEXT, MEMORY, BATCH, SLOT] = [place(0), place(1), place(2), place(3)] as const;
const AT = {
  memory: OFFSETS["llama_context.memory"].at,
  batchTokens: OFFSETS["llama_batch_ext.tokens"].at,
  media: OFFSETS["server_slot.prompt.tokens.map_idx_to_media"].at,
  tokens: OFFSETS["server_slot.prompt.tokens.tokens"].at,
} as const;
const BYTES_OF_TOKEN = 80;
const KV_CACHE = 526384n;
const KV_CACHE_ISWA = 527072n;

type Call = (...args: (bigint | number)[]) => number;

let view: DataView;
let call: Record<"process" | "prompt_clear", Call>;

beforeEach(async () => {
  const memory = hostMemory(PAGES);
  const { instance } = await WebAssembly.instantiate(linkHost(PAGES, false), { env: { memory } });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  call = instance.exports as typeof call;
  view = new DataView(memory.buffer);
});

const setPointer = (at: number, to: number): void => view.setBigUint64(at, BigInt(to), true);

/** Runs three nodes, each of which doubles the one before. */
async function run(options: { isStepLeft: boolean; thread?: number }) {
  const host = await GraphHost.start();
  const nodes = [host.add({ ne: [1], values: [1] })];
  for (let index = 0; index < 3; index++)
    nodes.push(host.add({ op: ADD, sources: [nodes[index]!, nodes[index]!], ne: [1] }));
  const { status } = host.run(nodes.slice(1), options);
  return { values: nodes.slice(1).flatMap((node) => host.values(node)), status };
}

describe("aborting a step", () => {
  test("happens after the next node, like llama.cpp's own abort callback", async () => {
    expect(await run({ isStepLeft: true })).toEqual({ values: [2, Number.NaN, Number.NaN], status: 1 });
  });

  test("is decided by the first thread", async () => {
    expect(await run({ isStepLeft: true, thread: 1 })).toMatchObject({ status: 0 });
  });

  test("does not happen without a request", async () => {
    expect(await run({ isStepLeft: false })).toEqual({ values: [2, 4, 8], status: 0 });
  });
});

describe("an aborted batch", () => {
  const LEFT = 2;
  const BATCH_TOKENS = 3;
  const TOKENS = 10;

  /** Decodes a batch of three tokens. */
  function decode(result: number, memoryClass: bigint): number {
    view.setInt32(PROCESS_RESULT, result, true);
    setPointer(CONTEXT + AT.memory, MEMORY);
    view.setBigUint64(MEMORY, memoryClass, true);
    setPointer(BATCH + AT.batchTokens, 2 ** 20);
    setPointer(BATCH + AT.batchTokens + 8, 2 ** 20 + BATCH_TOKENS * BYTES_OF_TOKEN);
    return call.process(BigInt(CONTEXT), 1, BigInt(BATCH));
  }

  /** Clears the slot's prompt of ten tokens. Resolves to the number of tokens left, or "all" if llama.cpp's function ran. */
  function forget(media = 0): number | "all" {
    view.setBigUint64(SLOT + AT.media, BigInt(media), true);
    setPointer(SLOT + AT.tokens, 2 ** 20);
    setPointer(SLOT + AT.tokens + 8, 2 ** 20 + 4 * TOKENS);
    view.setInt32(FALLBACK_MARK, 0, true);
    call.prompt_clear(BigInt(SLOT));
    if (view.getInt32(FALLBACK_MARK, true) === 1) return "all";
    return Number(view.getBigUint64(SLOT + AT.tokens + 8, true) - BigInt(2 ** 20)) / 4;
  }

  test.each([
    ["a cache", KV_CACHE],
    ["a cache with a sliding window", KV_CACHE_ISWA],
  ])(
    "is a failure to the server, after which the slot remembers what %s had before",
    (_what, memoryClass) => {
      expect(decode(LEFT, memoryClass)).toBeLessThan(-1);
      expect(forget()).toBe(TOKENS - BATCH_TOKENS);
    },
  );

  test("leaves no tokens in a memory that cannot remove them", () => {
    expect(decode(LEFT, 1n)).toBeLessThan(-1);
    expect(forget()).toBe("all");
  });

  test("leaves no tokens of a prompt with media, whose positions are not those of its tokens", () => {
    decode(LEFT, KV_CACHE);
    expect(forget(1)).toBe("all");
  });

  test("is handled once: later the slot is cleared completely", () => {
    decode(LEFT, KV_CACHE);
    forget();
    expect(forget()).toBe("all");
  });

  test.each([0, 1, -1, -3])(
    "is distinguished from result %i, which does not change and clears the slot",
    (result) => {
      expect(decode(result, KV_CACHE)).toBe(result);
      expect(forget()).toBe("all");
    },
  );
});
