import { setTimeout as delay } from "node:timers/promises";
import type { Fault, FixtureHub } from "../../../../test/support/fixture-hub.ts";
import type { Random } from "./random.ts";

/** Longer than a stall is waited for in a test, shorter than anybody waits for a run. */
const LONG_MS = 3000;

const STATUSES = [400, 401, 403, 404, 408, 410, 418, 422, 429, 500, 501, 502, 503, 504, 520];
const NONSENSE = [
  "",
  "<!doctype html><title>Sign in</title>",
  "null",
  "[]",
  "{}",
  '{"sha": "main"}',
  '{"sha": "aaa',
  '[{"type": "file"}]',
  '[{"type":"file","path":"../../x.gguf","size":1,"oid":"0"}]',
  '[{"type":"file","path":"x.gguf","size":1e300}]',
  "[".repeat(100_000),
  `[${"[],".repeat(200_000)}1]`,
];
const HEADERS: readonly Record<string, string>[] = [
  { etag: '"another"' },
  { etag: "W/weak" },
  { "content-range": "bytes 0-0/1" },
  { "content-range": "nonsense" },
  { "content-length": "1" },
  { "x-linked-etag": `"${"0".repeat(64)}"` },
  { "x-linked-size": "1" },
  { "x-error-message": "x".repeat(5000) },
  { link: '<http://[>; rel="next"' },
];

/** Something that goes wrong with one answer of a hub or its storage. */
export function randomFault(random: Random, hub: FixtureHub, asked: string): Fault {
  const faults: readonly (() => Fault)[] = [
    () => ({ status: random.pick(STATUSES), headers: random.chance(0.2) ? { "retry-after": "1" } : {} }),
    () => ({ body: random.pick(NONSENSE), status: random.chance(0.8) ? 200 : 503 }),
    () => ({ headers: random.pick(HEADERS) }),
    () => ({ cutAfter: random.int(0, 60_000) }),
    () => ({ endAfter: random.int(0, 60_000) }),
    () => ({ endAfter: random.int(0, 60_000), append: new Uint8Array() }),
    () => ({ ignoreRange: true }),
    () => ({ corrupt: true }),
    () => ({ append: random.bytes(random.int(1, 5000)) }),
    () => ({
      redirect: random.pick(["?", asked, `${hub.storageUrl}${asked}`, "http://[", "file:///etc/passwd"]),
    }),
    () => ({ redirect: `${hub.url}/loop?${random.int(0, 1e9)}` }),
    () => ({ pause: { after: random.int(0, 5000), until: delay(random.int(1, LONG_MS)) }, cutAfter: 50_000 }),
    () => ({ drops: { bytes: random.int(1, 500), everyMs: random.int(1, 20) }, cutAfter: 5000 }),
    () => ({ body: endless(random.bytes(64 * 1024)) }),
    () => ({
      body: "[]",
      headers: { link: `<${hub.url}${asked.split("?")[0] ?? ""}?page=${random.int(0, 1e9)}>; rel="next"` },
    }),
  ];
  return random.pick(faults)();
}

function* endless(bytes: Uint8Array): Generator<Uint8Array> {
  for (;;) yield bytes;
}
