import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the frame of tools allows its own script and no other", () => {
  const html = readFileSync(new URL("../../../src/ui/tool-frame.html", import.meta.url), "utf8");
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(html) ?? [];
  const hash = createHash("sha256").update(script).digest("base64");
  expect(html).toContain(`default-src 'none'; script-src 'sha256-${hash}'; worker-src blob:`);
});
