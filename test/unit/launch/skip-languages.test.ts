import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const SCRIPT = `
import { skipZodLocales } from "./src/launch/skip-languages.mjs";
skipZodLocales();
const { z } = await import("zod");
const { error } = z.string().safeParse(1);
console.log(JSON.stringify({ languages: Object.keys(z.locales), message: error.issues[0].message }));
`;

test("zod is loaded with English messages only", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", SCRIPT], {
    cwd: fileURLToPath(new URL("../../../", import.meta.url)),
  });
  expect(JSON.parse(stdout)).toEqual({
    languages: [],
    message: "Invalid input: expected string, received number",
  });
});
