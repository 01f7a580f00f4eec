import { describe, expect, it } from "vitest";
import { link, type LinkPlan } from "../../../wasm/linker/link.ts";
import { parseModule } from "../../../wasm/linker/wasm-module.ts";
import { hostMemory } from "../../support/kernel-host-module.ts";
import { ADD, CALL_SQUARE, DATA_OBJECT, smallModule, SQUARE, SQUARE_OBJECT } from "./small-module.ts";

type NumberFunction = (...args: number[]) => number;

async function run(bytes: BufferSource, maximumPages = 4): Promise<Record<string, NumberFunction>> {
  const memory = hostMemory(1, { maximum: maximumPages });
  const { instance } = await WebAssembly.instantiate(bytes, { env: { memory } });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return instance.exports as Record<string, NumberFunction>;
}

const squarePlan: LinkPlan = {
  object: SQUARE_OBJECT,
  replace: { fast_square: SQUARE },
  originals: { original_square: SQUARE },
  imports: { stock_add: ADD },
  exports: { fast: SQUARE },
};

/** In call_square: the kernel's square of x + 5 for the module's square of x, and 1 more. */
const SQUARE_OF_SUM = {
  index: CALL_SQUARE,
  find: [0x10, SQUARE],
  times: 1,
  push: [0x41, 5, 0x6a],
  kernel: "fast_square",
  behind: [0x41, 1, 0x6a],
};

describe("linking kernels into a finished module", () => {
  it("replaces the function by the kernel, for callers inside and outside", async () => {
    const exports = await run(link(smallModule(), squarePlan));
    // 2x + (x² − 2x) through the kernel, the module's own add and the kernel's own helper on the shadow stack.
    expect(exports["call_square"]!(9)).toBe(81);
    expect(exports["fast"]!(9)).toBe(81);
  });

  it("keeps the replaced function callable", async () => {
    const exports = await run(link(smallModule(), squarePlan));
    expect(exports["call_square"]!(-7)).toBe(49);
  });

  it("replaces instructions within a function by a kernel call", async () => {
    const { replace: _, ...plan } = squarePlan;
    const exports = await run(link(smallModule(), { ...plan, splices: [SQUARE_OF_SUM] }));
    expect(exports["call_square"]!(9)).toBe(14 * 14 + 1);
    expect(exports["fast"]!(9)).toBe(81);
  });

  it("replaces instructions in a replaced function, too", async () => {
    const splices = [
      // x · x becomes the kernel's square of -2x.
      {
        index: SQUARE,
        find: [0x20, 0, 0x6c],
        times: 1,
        push: [0x20, 0, 0x6a, 0x41, 0x7f, 0x6c],
        kernel: "fast_square",
      },
    ];
    const exports = await run(link(smallModule(), { ...squarePlan, splices }));
    expect(exports["call_square"]!(-7)).toBe(14 * 14);
    expect(exports["call_square"]!(7)).toBe(49);
  });

  it("does not change other parts, and drops custom sections", () => {
    const before = parseModule(smallModule());
    const after = parseModule(link(smallModule(), {}));
    expect(after.bodies).toEqual(before.bodies);
    expect(after.exports).toEqual(before.exports);
    expect(before.sections.some(({ id }) => id === 0)).toBe(true);
    expect(after.sections.some(({ id }) => id === 0)).toBe(false);
  });

  it("adds exports without kernels", async () => {
    const exports = await run(link(smallModule(), { exports: { sum: ADD } }));
    expect(exports["sum"]!(2, 3)).toBe(5);
  });

  it("raises the maximum of the imported memory", async () => {
    const raised = link(smallModule(), { memoryMaximum: 262_144 });
    expect(parseModule(raised).imports[0]?.limits).toEqual({ flags: 5, minimum: 1, maximum: 262_144 });
    await expect(run(raised, 1000)).resolves.toBeDefined();
    await expect(run(smallModule(), 1000)).rejects.toThrow(WebAssembly.LinkError);
  });
});

describe("invalid input of the linker", () => {
  const cases: [string, LinkPlan, RegExp][] = [
    ["an undefined symbol", { ...squarePlan, imports: {} }, /undefined symbol stock_add/],
    [
      "a kernel that the object does not define",
      { ...squarePlan, replace: { slow_square: SQUARE } },
      /no slow_square/,
    ],
    ["a kernel of another type", { ...squarePlan, replace: { fast_square: ADD } }, /has type/],
    [
      "code that is not where it should be",
      { ...squarePlan, splices: [{ ...SQUARE_OF_SUM, index: ADD }] },
      /function 0 has the code that fast_square replaces 0 times/,
    ],
    [
      "code that is there more often than it should",
      { ...squarePlan, splices: [{ ...SQUARE_OF_SUM, index: SQUARE, find: [0x20, 0] }] },
      /replaces 2 times/,
    ],
    ["an object with data segments", { object: DATA_OBJECT }, /data segments/],
    ["an object that is a finished module", { object: smallModule() }, /no linking section/],
    ["a name that is exported already", { exports: { call_square: ADD } }, /exported already/],
  ];
  it.each(cases)("rejects %s", (_, plan, message) => {
    expect(() => link(smallModule(), plan)).toThrow(message);
  });

  it("rejects bytes that are not a module", () => {
    expect(() => link(new Uint8Array([1, 2, 3]), {})).toThrow(/not a WebAssembly module/);
  });

  it("rejects a module truncated at any byte", () => {
    const whole = smallModule();
    const lengths = Array.from({ length: whole.length - 9 }, (_, index) => index + 9);
    const accepted = lengths.filter((length) => {
      try {
        return (
          WebAssembly.validate(link(whole.subarray(0, length), squarePlan)) && length < whole.length - 13
        );
      } catch {
        return false;
      }
    });
    expect(accepted).toEqual([]);
  });
});
