import { describe, expect, test } from "vitest";
import { exceededBound } from "../../../src/json/json-bounds.ts";

describe("the bounds of a JSON text", () => {
  const bounds = { depth: 3, values: 8 };

  test.each(['{"a":[{}]}', '"[[[[[[["', '"\\"[[[[[["', "[1,2,3,4,5,6]", "", '"', '"\\'])(
    "allow %s",
    (text) => {
      expect(exceededBound(text, bounds)).toBeUndefined();
    },
  );

  test.each(["[[[[", '{"a":{"b":{"c":{}}}}', '["\\\\",[[[['])("reject the depth of %s", (text) => {
    expect(exceededBound(text, bounds)).toBe("depth");
  });

  test.each(["[1,2,3,4,5,6,7,8]", ",,,,,,,,,"])("reject the number of values of %s", (text) => {
    expect(exceededBound(text, bounds)).toBe("values");
  });
});
