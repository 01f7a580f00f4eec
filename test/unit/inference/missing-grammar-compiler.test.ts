import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Program that runs two requests in a process that cannot load the compiler. */
const PROGRAM = `
import { registerHooks } from "node:module";
registerHooks({
  resolve: (specifier, context, next) => {
    if (specifier.endsWith("/grammar-work.ts"))
      throw Object.assign(new Error("no such module"), {
        code: process.env.CODE,
        url: new URL(specifier, context.parentURL).href,
      });
    return next(specifier, context);
  },
});
const { never, REQUEST, setup } = await import(${JSON.stringify(import.meta.resolve("./inference-setup.ts"))});
const { inference } = setup();
const format = { type: "json_schema", schema: { type: "object" } };
const plain = await inference.generate(REQUEST, never);
const events = await Array.fromAsync(plain.events);
const { code, status } = await inference.generate({ ...REQUEST, format }, never).catch((error) => error);
console.log(JSON.stringify([events.at(-1).reason, code, status, inference.activeRequests]));
`;

/** Runs the program, in which loading the compiler fails with this code. */
async function run(code: string): Promise<unknown> {
  const args = ["--input-type=module", "--eval", PROGRAM];
  const env = { ...process.env, CODE: code };
  const { stdout } = await promisify(execFile)(process.execPath, args, { env });
  return JSON.parse(stdout);
}

test("without the grammar compiler, plain completions work and formats are refused", async () => {
  expect(await run("ERR_MODULE_NOT_FOUND")).toEqual(["stop", "unsupported_feature", 400, 0]);
});

test("a compiler that cannot be loaded for another reason is not reported as missing", async () => {
  expect(await run("EMFILE")).toEqual(["stop", "EMFILE", null, 0]);
});
