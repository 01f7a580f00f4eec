import { describe, expect, test } from "vitest";
import { beyondBounds } from "../../../src/json/json-bounds.ts";

describe("the bounds of a JSON text", () => {
  const bounds = { depth: 3, values: 8 };

  test.each(['{"a":[{}]}', '"[[[[[[["', '"\\"[[[[[["', "[1,2,3,4,5,6]", "", '"', '"\\'])(
    "allow %s",
    (text) => {
      expect(beyondBounds(text, bounds)).toBeUndefined();
    },
  );

  test.each(["[[[[", '{"a":{"b":{"c":{}}}}', '["\\\\",[[[['])("forbid the depth of %s", (text) => {
    expect(beyondBounds(text, bounds)).toBe("depth");
  });

  test.each(["[1,2,3,4,5,6,7,8]", ",,,,,,,,,"])("forbid the number of values of %s", (text) => {
    expect(beyondBounds(text, bounds)).toBe("values");
  });
});
