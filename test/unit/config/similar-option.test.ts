import { expect, test } from "vitest";
import { similarOption } from "../../../src/config/similar-option.ts";

test.each([
  ["http.prot", "http.port"],
  ["http.address", undefined],
  ["api_key", "api_keys"],
  ["apikeys", "api_keys"],
  ["models.keepalive", "models.keep_alive"],
  // Without its table.
  ["port", "http.port"],
  ["keep_alive", "models.keep_alive"],
  // Two tables have one.
  ["prefix", "fleet.prefix"],
  ["mode", "gpu.mode"],
  ["x", undefined],
  ["", undefined],
  ["models.something_else", undefined],
])("%j is perhaps %j", (name, meant) => {
  expect(similarOption(name)).toBe(meant);
});
