import { expect, test } from "vitest";
import { AnswerNumbers } from "../../../../src/engine/core/answer-numbers.ts";
import { promptRequest } from "../../../support/engine-fixture.ts";

/** A worker whose heap has room for lists, or has not. */
function numbers(hasRoom: boolean) {
  const asked: unknown[] = [];
  const session = {
    call: async (_verb: string, ...args: readonly unknown[]): Promise<unknown> => {
      asked.push(args[0]);
      return args[0] === "give" ? hasRoom : true;
    },
  };
  const loop = { runBetweenPolls: async <Result>(call: () => Promise<Result>) => await call() };
  return { asked, numbers: new AnswerNumbers(session, loop, 100) };
}

const REQUEST = { ...promptRequest("a"), given: [1, 2] };

test("an answer whose tokens the heap has no room for is refused, and not begun again without them", async () => {
  const full = numbers(false);
  await expect(full.numbers.enter(REQUEST)).rejects.toMatchObject({ code: "insufficient_memory" });
});

test("tokens are taken away when their answer has ended", async () => {
  const some = numbers(true);
  {
    using number = await some.numbers.enter(REQUEST);
    expect(number?.value).toBe(1);
    expect(some.asked).toEqual(["give"]);
  }
  expect(some.asked).toEqual(["give", "take"]);
});
