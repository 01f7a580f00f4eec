// Loaded into a daemon before its own code (node --import): lets the n-th call of one kind fail as the system would,
// below everything that Node and the daemon make of it. Orders come in a file, announced by SIGUSR2.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import process from "node:process";

/** @typedef {{ id: number, kind: string, error: keyof typeof os.constants.errno, after: number, times: number }} Order */

const folder = process.env["DAYBREAK_TEST_FAULTS"] ?? "";
// The modules below Node's own: what they answer is what the system answers.
const binding = Reflect.get(process, "binding");
const fs = binding("fs");
const { Process } = binding("process_wrap");
const { TCP } = binding("tcp_wrap");
const { Pipe } = binding("pipe_wrap");

/** @type {Order | undefined} */
let order;
/** Calls of each kind since the last order. @type {Record<string, number>} */
let seen = {};
let fired = 0;

/**
 * The number of the error that this call is to fail with, as the system gives it; 0: none.
 * @param {string} kind
 */
function due(kind) {
  const number = (seen[kind] = (seen[kind] ?? 0) + 1);
  if (order?.kind !== kind || number <= order.after || number > order.after + order.times) return 0;
  fired++;
  return -(os.constants.errno[order.error] ?? 0);
}

/**
 * @param {any} target
 * @param {string} name
 * @param {(self: any) => string} kindOf
 */
function failWithNumber(target, name, kindOf) {
  const original = target[name];
  if (typeof original !== "function") return;
  target[name] = function (/** @type {any[]} */ ...args) {
    const number = due(kindOf(this));
    return number === 0 ? original.apply(this, args) : number;
  };
}

/**
 * @param {string} name
 * @param {string} kind
 */
function failInFs(name, kind) {
  const original = fs[name];
  if (typeof original !== "function") return;
  fs[name] = function (/** @type {any[]} */ ...args) {
    const number = due(kind);
    if (number === 0) return original.apply(this, args);
    const code = order?.error ?? "EIO";
    const error = Object.assign(new Error(`${code}: injected, ${name} '${String(args[0])}'`), {
      code,
      errno: number,
      syscall: name,
    });
    if (args.includes(fs.kUsePromises)) return Promise.reject(error);
    const request = args.find((arg) => arg instanceof fs.FSReqCallback);
    if (!request) throw error;
    process.nextTick(() => request.oncomplete(error));
    return undefined;
  };
}

failWithNumber(Process.prototype, "spawn", () => "spawn");
for (const { prototype } of [TCP, Pipe]) {
  failWithNumber(prototype, "listen", () => "listen");
  for (const name of ["connect", "connect6"]) failWithNumber(prototype, name, () => "connect");
}
const stream = Object.getPrototypeOf(TCP.prototype);
for (const name of ["writeBuffer", "writev", "writeUtf8String", "writeLatin1String", "writeAsciiString"])
  failWithNumber(stream, name, (self) => (self instanceof Pipe ? "send" : "write"));
for (const name of ["open", "openFileHandle", "readFileUtf8", "readdir"]) failInFs(name, "open");
for (const name of ["stat", "lstat", "fstat", "realpath"]) failInFs(name, "stat");
for (const name of [
  "writeFileUtf8",
  "writeBuffer",
  "writeBuffers",
  "writeString",
  "fsync",
  "mkdir",
  "rename",
])
  failInFs(name, "save");

// A connection that the system does not let the daemon accept.
for (const { prototype } of [TCP, Pipe]) {
  let handler = Symbol("onconnection");
  Object.defineProperty(prototype, "onconnection", {
    configurable: true,
    get() {
      return this[handler];
    },
    set(callback) {
      this[handler] = function (/** @type {number} */ status, /** @type {any} */ client) {
        const number = due("accept");
        if (number === 0) return callback.call(this, status, client);
        client?.close();
        return callback.call(this, number, undefined);
      };
    },
  });
}

process.on("SIGUSR2", () => {
  const report = { seen, fired };
  order = undefined;
  /** @type {Order} */
  const next = JSON.parse(readFileSync(path.join(folder, "order.json"), "utf8"));
  const answer = path.join(folder, "answer.json");
  writeFileSync(`${answer}.part`, JSON.stringify({ id: next.id, ...report }));
  renameSync(`${answer}.part`, answer);
  seen = {};
  fired = 0;
  order = next;
});
