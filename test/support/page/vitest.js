// As much of vitest as the tests of kernels in test/unit/wasm use, for a page; what it lacks throws where it is used.

const tests = [];
const preparations = [];
const names = [];

export function beforeAll(prepare) {
  preparations.push(prepare);
}

export function it(name, run) {
  tests.push({ name: [...names, name].join(" "), run });
}

export function describe(name, define) {
  names.push(name);
  define();
  names.pop();
}

it.each = (cases) => (name, run) => {
  for (const value of cases) {
    // An array holds the arguments, as in vitest.
    it(`${name} [${value}]`, () => (Array.isArray(value) ? run(...value) : run(value)));
  }
};

describe.each = (cases) => (name, define) => {
  for (const value of cases) describe(`${name} [${value}]`, () => define(value));
};

export function expect(actual) {
  const check = (holds, expected) => {
    if (!holds) throw new Error(`${JSON.stringify(actual)} is not ${JSON.stringify(expected)}`);
  };
  return {
    toBe: (expected) => check(Object.is(actual, expected), expected),
    toBeLessThan: (expected) => check(actual < expected, `below ${expected}`),
    toBeLessThanOrEqual: (expected) => check(actual <= expected, `at most ${expected}`),
    toEqual: (expected) =>
      check(
        actual.length === expected.length && expected.every((value, at) => Object.is(actual[at], value)),
        expected,
      ),
  };
}

/** Runs what has been defined since it last ran; gives the failures by name. */
export async function runTests() {
  const defined = tests.splice(0);
  for (const prepare of preparations.splice(0)) await prepare();
  const failures = [];
  for (const { name, run } of defined) {
    try {
      await run();
    } catch (error) {
      failures.push(`${name}: ${error.stack ?? error}`);
    }
  }
  return { count: defined.length, failures };
}
