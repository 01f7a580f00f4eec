import { beforeEach, describe, expect, test } from "vitest";
import { again, count, GuessingHost, SLOT_STATES, type Step } from "../../support/guessing-host.ts";

const { generating } = SLOT_STATES;
/** Time of a step without drafts, in ms. */
const PLAIN_MS = 10;

let host: GuessingHost;
beforeEach(async () => {
  host = await GuessingHost.start();
});

const begin = (requests: number): void => host.begin(Array(requests).fill(generating));

/** Step of several requests; a draft token costs this many hundredths of a request's share of a step. */
const shared = (requests: number, guessed: number, cost: number): [number, Step] => [
  PLAIN_MS * (1 + ((guessed > 0 ? 10 : 0) + cost * guessed) / (100 * requests)),
  { guessed, tokens: requests + guessed },
];

/** Number of draft tokens after a repetitive text. */
const guessed = (): number => host.guess(again(4)).length;

describe("the cost of a draft token with several generating requests", () => {
  test.each([
    [2, 17],
    [4, 89],
    [4, 20],
    [8, 95],
  ])("is measured for %i requests: %i", (requests, cost) => {
    begin(requests);
    host.steps(4, ...shared(requests, 0, cost));
    host.steps(60, ...shared(requests, 3, cost));
    expect(host.tokenCost(requests)).toBeCloseTo(cost, 0);
    expect(host.tokenCost()).toBe(0);
    host.step(100 * PLAIN_MS, { guessed: 3, tokens: requests + 3 });
    expect(host.tokenCost(requests)).toBeLessThanOrEqual(1.07 * cost);
  });

  test("is measured for each number of requests, even if the number changes", () => {
    for (let at = 0; at < 90; at++) {
      const requests = 2 + (at % 3);
      begin(requests);
      host.step(...shared(requests, guessed() > 0 ? 3 : 0, 20 * requests));
    }
    for (const requests of [2, 3, 4]) expect(host.tokenCost(requests)).toBeCloseTo(20 * requests, 0);
  });

  test("is not measured in a step without a token of one request, or with too many requests", () => {
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

describe("drafts with several generating requests", () => {
  test("begin when the time of a plain step with so many requests is known", () => {
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

  test("pause when they are rejected, until fewer requests generate", () => {
    for (const requests of [1, 2]) {
      begin(requests);
      host.steps(4, ...shared(requests, 0, 50));
    }
    let said = 0;
    /** Number of draft tokens after a text that continued differently than the last draft. */
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
