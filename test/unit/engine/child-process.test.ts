import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { expect, it, test } from "vitest";
import { isRestricted, LastLines } from "../../../src/engine/child-process.ts";

async function read(text: string): Promise<LastLines> {
  const lines = new LastLines();
  const stream = Readable.from([text]);
  lines.watch(stream);
  await finished(stream);
  return lines;
}

test("the last error line of an aborted Node process is the reason, without the stack", async () => {
  const { lastError } = await read(`
FATAL ERROR: v8::ArrayBuffer::NewBackingStore Allocation failed - process out of memory
----- Native stack trace -----

 1: 0x7e2f2b node::OOMErrorHandler(char const*, v8::OOMDetails const&) [/usr/bin/node]
 2: 0x840f6d node::OnFatalError(char const*, char const*) [/usr/bin/node]
 3: 0x7f00aa46d2b1  [/node_modules/webgpu/dist/linux-x64/dawn.node]
 4: 0x7f00aa46d2b2 abort [/lib/libc.so.6]
 5: 0x7f00aa46d2b3  [/lib/libc.so.6]

----- JavaScript stack trace -----

1: onError (node:internal/worker:120:3)
2: node:internal/main/worker_thread:5:1
`);
  expect(lastError).toBe(
    "FATAL ERROR: v8::ArrayBuffer::NewBackingStore Allocation failed - process out of memory",
  );
});

test("the last error line of an uncaught error is its message, without the stack", async () => {
  const { lastError } = await read(`
node:net:411
      throw new ERR_ACCESS_DENIED("Access to this API has been restricted.", "Net");

Error: Access to this API has been restricted. Use --allow-net to manage permissions.
    at new Socket (node:net:411:13)
    at async file:///opt/daybreak/src/engine/host/engine-main.ts:41:1
    at process._fatalException (node:internal/process/execution:192:32) {
  code: 'ERR_ACCESS_DENIED',
  permission: 'Net'
}
`);
  expect(lastError).toBe(
    "Error: Access to this API has been restricted. Use --allow-net to manage permissions.",
  );
});

test("numbered lines that are not stack frames are kept", async () => {
  expect((await read("1: error: the file is not a model\n")).lastError).toContain("not a model");
});

it.each([
  ["denies all rights", [], true],
  ["allows reading all files", ["fs.read"], false],
  ["allows writing files", ["fs.write"], false],
  ["allows starting processes", ["child"], false],
])("isRestricted() with a permission model that %s: %#", (_, granted: string[], isFenced) => {
  expect(isRestricted({ has: (right) => granted.includes(right) })).toBe(isFenced);
});

it("isRestricted() is false without a permission model", () => {
  expect(process.permission).toBeUndefined();
  expect(isRestricted()).toBe(false);
});
