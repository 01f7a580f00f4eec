import { expect, test } from "vitest";
import { RequestNumbers } from "../../../../src/engine/core/answer-numbers.ts";
import { RequestLoop } from "../../../../src/engine/core/request-loop.ts";
import { promptRequest } from "../../../support/engine-fixture.ts";

/** RequestNumbers with a fake worker, which can or cannot store prefix tokens. */
function numbers(canStore: boolean) {
  const called: unknown[] = [];
  const session = {
    act: () => Promise.reject(new Error("no request is expected")),
    call: async (_verb: string, ...args: readonly unknown[]): Promise<unknown> => {
      called.push(args[0]);
      return args[0] === "give" ? canStore : true;
    },
  };
  return { called, numbers: new RequestNumbers(new RequestLoop(session), 100) };
}

const REQUEST = { ...promptRequest("a"), given: [1, 2] };

test("rejects a request whose prefix tokens do not fit into the heap", async () => {
  const full = numbers(false);
  await expect(full.numbers.assign(REQUEST)).rejects.toMatchObject({ code: "insufficient_memory" });
});

test("removes the prefix tokens of a request when its number is disposed", async () => {
  const some = numbers(true);
  {
    using number = await some.numbers.assign(REQUEST);
    expect(number?.value).toBe(1);
    expect(some.called).toEqual(["give"]);
  }
  await expect.poll(() => some.called).toEqual(["give", "take"]);
});
