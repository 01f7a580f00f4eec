import { beforeEach, describe, expect, test } from "vitest";
import { again, count, GuessingHost, SLOT_STATES, type Step } from "../../support/guessing-host.ts";

const { generating } = SLOT_STATES;
/** A step without guesses, in ms. */
const PLAIN_MS = 10;

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
});

const begin = (requests: number): void => host.begin(Array(requests).fill(generating));

/** A step of so many requests, in which a guessed token costs so many hundredths of what a step takes for one of them. */
const shared = (requests: number, guessed: number, cost: number): [number, Step] => [
  PLAIN_MS * (1 + ((guessed > 0 ? 10 : 0) + cost * guessed) / (100 * requests)),
  { guessed, tokens: requests + guessed },
];

/** How many tokens are guessed behind a text that repeats itself. */
const guessed = (): number => host.guess(again(4)).length;

describe("the cost of a token that is checked, where several requests always generate", () => {
  test.each([
    [2, 17],
    [4, 89],
    [4, 20],
    [8, 95],
  ])("is learned from the steps of %i of them: %i", (requests, cost) => {
    begin(requests);
    host.steps(4, ...shared(requests, 0, cost));
    host.steps(60, ...shared(requests, 3, cost));
    expect(host.tokenCost(requests)).toBeCloseTo(cost, 0);
    expect(host.tokenCost()).toBe(0);
    host.step(100 * PLAIN_MS, { guessed: 3, tokens: requests + 3 });
    expect(host.tokenCost(requests)).toBeLessThanOrEqual(1.07 * cost);
  });

  test("is learned for each number of them, although they come and go", () => {
    for (let at = 0; at < 90; at++) {
      const requests = 2 + (at % 3);
      begin(requests);
      host.step(...shared(requests, guessed() > 0 ? 3 : 0, 20 * requests));
    }
    for (const requests of [2, 3, 4]) expect(host.tokenCost(requests)).toBeCloseTo(20 * requests, 0);
  });

  test("is not learned from a step in which one of them has no token, or where there are more than are told apart", () => {
    begin(4);
    host.steps(4, ...shared(4, 0, 50));
    host.steps(40, PLAIN_MS, { guessed: 3, tokens: 6 });
    expect(host.tokenCost(4)).toBe(0);
    begin(9);
    host.steps(4, ...shared(9, 0, 50));
    host.steps(40, ...shared(9, 3, 50));
    for (let requests = 1; requests <= 8; requests++) expect(host.tokenCost(requests)).toBe(0);
    expect(guessed()).toBe(1);
  });
});

describe("guesses, where several requests generate", () => {
  test("begin when it is known what a step without them takes for so many", () => {
    for (const requests of [2, 3]) {
      const made = Array.from({ length: 5 }, () => {
        begin(requests);
        const length = guessed();
        host.step(...shared(requests, length, 50));
        return length;
      });
      expect(made.slice(0, 4)).toEqual([0, 0, 0, 0]);
      expect(made[4]).toBeGreaterThan(0);
    }
  });

  test("rest where they are wrong, until fewer of them generate", () => {
    for (const requests of [1, 2]) {
      begin(requests);
      host.steps(4, ...shared(requests, 0, 50));
    }
    let said = 0;
    /** What is guessed behind a text that went on in another way after the last guess. */
    const wrong = (): number =>
      host.guess([...count(1, 100), ...Array.from({ length: ++said }, () => 0), ...count(1, 4)]).length;
    begin(2);
    expect([wrong(), wrong(), wrong(), wrong()]).toEqual([1, 1, 0, 0]);
    begin(2);
    expect(wrong()).toBe(0);
    begin(1);
    expect([wrong(), wrong(), wrong(), wrong()]).toEqual([1, 0, 0, 0]);
    begin(2);
    expect(wrong()).toBe(0);
    begin(1);
    expect(wrong()).toBe(0);
  });
});
