import { beforeEach, describe, expect, test } from "vitest";
import {
  FALLBACK_MARK,
  hostMemory,
  linkHost,
  PROCESS_RESULT,
  STACK_TOP,
} from "../../support/kernel-host-module.ts";

const PAGES = 32;
const LEAVE_STEP = 44;
/** Structures of llama.cpp's, far enough from each other. */
const place = (number: number): number => STACK_TOP + 4096 * number;
const [PARAMS, POOL, GRAPH, NODES, NODE] = [place(0), place(1), place(2), place(3), place(4)] as const;
const [CONTEXT, MEMORY, BATCH, SLOT] = [place(5), place(6), place(7), place(8)] as const;
const AT = {
  pool: 24,
  nodes: 88,
  leftAt: 264,
  status: 292,
  memory: 256,
  batchTokens: 64,
  media: 2960,
  tokens: 2968,
} as const;
const BYTES_OF_TOKEN = 80;
const KV_CACHE = 526384n;
const KV_CACHE_ISWA = 527072n;

type Call = (...args: (bigint | number)[]) => number;

let view: DataView;
let call: Record<"operator" | "process" | "prompt_clear", Call>;

beforeEach(async () => {
  const memory = hostMemory(PAGES);
  const { instance } = await WebAssembly.instantiate(linkHost(PAGES, false), { env: { memory } });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  call = instance.exports as typeof call;
  view = new DataView(memory.buffer);
});

const setPointer = (at: number, to: number): void => view.setBigUint64(at, BigInt(to), true);

/** Where the graph is left, and its status. */
const state = (): number[] => [view.getInt32(POOL + AT.leftAt, true), view.getInt32(POOL + AT.status, true)];

describe("leaving a step", () => {
  const OTHER_NODES = 5;

  /** One thread is before an operator, the last of six. */
  function before(thread: number): void {
    view.setInt32(PARAMS, thread, true);
    setPointer(PARAMS + AT.pool, POOL);
    setPointer(POOL + AT.nodes, GRAPH);
    view.setInt32(POOL + AT.leftAt, -1, true);
    view.setInt32(GRAPH + 4, OTHER_NODES + 1, true);
    setPointer(GRAPH + 16, NODES);
    setPointer(NODES + 8 * OTHER_NODES, NODE);
    call.operator(BigInt(PARAMS), BigInt(NODE));
  }
  test("happens behind the operator that comes next, as if llama.cpp's own callback had asked for it", () => {
    view.setInt32(LEAVE_STEP, 1, true);
    before(0);
    expect(state()).toEqual([OTHER_NODES + 1, 1]);
  });

  test("is for the first thread to decide", () => {
    view.setInt32(LEAVE_STEP, 1, true);
    before(1);
    expect(state()).toEqual([-1, 0]);
  });

  test("does not happen unasked", () => {
    before(0);
    expect(state()).toEqual([-1, 0]);
  });
});

describe("a batch that was left", () => {
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

  /** The slot is told to forget its prompt of ten tokens. Resolves to how many it remembers, or "all" for llama.cpp's own way. */
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

  test("leaves nothing in a memory that cannot take tokens back", () => {
    expect(decode(LEFT, 1n)).toBeLessThan(-1);
    expect(forget()).toBe("all");
  });

  test("leaves nothing of a prompt with media, whose positions are not those of its tokens", () => {
    decode(LEFT, KV_CACHE);
    expect(forget(1)).toBe("all");
  });

  test("counts once", () => {
    decode(LEFT, KV_CACHE);
    forget();
    expect(forget()).toBe("all");
  });

  test.each([0, 1, -1, -3])("is no other one: %i stays as it is, and the slot forgets all", (result) => {
    expect(decode(result, KV_CACHE)).toBe(result);
    expect(forget()).toBe("all");
  });
});
