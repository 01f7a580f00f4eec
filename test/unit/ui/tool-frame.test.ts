import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the policy of the frame for tools allows only its own script", () => {
  const html = readFileSync(new URL("../../../src/ui/tool-frame.html", import.meta.url), "utf8");
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(html) ?? [];
  const hash = createHash("sha256").update(script).digest("base64");
  expect(html).toContain(`default-src 'none'; script-src 'sha256-${hash}'; worker-src blob:`);
});
