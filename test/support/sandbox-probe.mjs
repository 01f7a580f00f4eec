// Hostile code with all of Node's rights in place of an engine: tries everything that it must not be able to do, and
// prints how each attempt ended. Standard input names its targets.
import fs from "node:fs";
import net from "node:net";
import { Worker } from "node:worker_threads";

const { allowed, secret, folder, port, socket, daemon, link } = JSON.parse(fs.readFileSync(0, "utf8"));

const results = {};
const attempt = async (name, action) => {
  try {
    const outcome = await action();
    results[name] = outcome === undefined ? "done" : String(outcome);
  } catch (error) {
    results[name] = `refused: ${error.code ?? error.message}`;
  }
};

const connected = (options) =>
  new Promise((resolve, reject) => {
    net
      .connect(options)
      .on("connect", () => resolve())
      .on("error", reject);
  });

/** Runs code in a thread with options of our choice. */
const inWorker = (code, options = {}) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(
      `const { parentPort, workerData } = require("node:worker_threads");
       (async () => { ${code} })().then(
         () => parentPort.postMessage(null),
         (error) => parentPort.postMessage(String(error.code ?? error.message)),
       );`,
      { eval: true, workerData: { secret, folder, port, socket, daemon }, ...options },
    );
    worker.on("message", (denial) => {
      void worker.terminate();
      if (denial === null) resolve();
      else reject({ code: denial });
    });
    worker.on("error", reject);
  });

const database = async (file) => {
  const { DatabaseSync } = await import("node:sqlite");
  new DatabaseSync(file).exec("create table if not exists taken (a)");
};

await attempt("read its own model", () => void fs.readFileSync(allowed));

// What Node forbids.
await attempt("node: read a foreign file", () => void fs.readFileSync(secret));
await attempt("node: read a foreign file through a link", () => void fs.readFileSync(link));
await attempt("node: open a foreign file for writing", () => void fs.openSync(secret, "r+"));
await attempt("node: list a folder", () => void fs.readdirSync(folder));
await attempt("node: write a file", () => fs.writeFileSync(`${folder}/written`, "x"));
await attempt("node: append to its own model", () => fs.appendFileSync(allowed, "x"));
await attempt("node: make a link", () => fs.symlinkSync(secret, `${folder}/made`));
await attempt("node: read in a thread", () => inWorker('require("node:fs").readFileSync(workerData.secret)'));
await attempt("node: start a process", async () => {
  (await import("node:child_process")).execFileSync(process.execPath, ["-v"]);
});
await attempt("node: become another program", () => process.execve(process.execPath, ["node", "-v"], {}));
await attempt("node: connect", () => connected({ port, host: "127.0.0.1" }));
await attempt("node: connect to a socket in a folder", () => connected({ path: socket }));
await attempt("node: connect in a thread", () =>
  inWorker(
    `await new Promise((resolve, reject) => require("node:net").connect(workerData.port, "127.0.0.1")
       .on("connect", resolve).on("error", reject));`,
  ),
);
await attempt("node: look up a name by a server of our choice", async () => {
  const { Resolver } = await import("node:dns/promises");
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${port}`]);
  await resolver.resolve4("localhost");
});
await attempt("node: listen", async () => {
  await new Promise((resolve, reject) => net.createServer().on("error", reject).listen(0, resolve));
});
await attempt("node: fetch", async () => {
  try {
    await fetch(`http://127.0.0.1:${port}/`);
  } catch (error) {
    throw error.cause ?? error;
  }
});
await attempt("node: send a datagram", async () => {
  const { createSocket } = await import("node:dgram");
  const sender = createSocket("udp4");
  await new Promise((resolve, reject) => {
    sender.on("error", reject);
    sender.send("x", port, "127.0.0.1", (error) => (error ? reject(error) : resolve()));
  });
});
await attempt("node: look up a name", async () => {
  await (await import("node:dns/promises")).lookup("localhost");
});
await attempt("node: load an addon", () => process.dlopen({ exports: {} }, `${folder}/addon.node`));
await attempt("node: open a library", async () => {
  const { DynamicLibrary } = await import("node:ffi");
  return typeof new DynamicLibrary(process.platform === "linux" ? "libc.so.6" : "libSystem.dylib");
});
await attempt("node: open a database", () => database(`${folder}/database`));
await attempt("node: open a database by its hidden name", () => {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  return typeof new DatabaseSync(`${folder}/database`);
});
await attempt("node: open the disk by WASI", async () => {
  const { WASI } = await import("node:wasi");
  return typeof new WASI({ version: "preview1", preopens: { "/": "/" } });
});
await attempt("node: open the inspector", async () => (await import("node:inspector")).open(0));
await attempt("node: speak to the inspector", async () => {
  const { Session } = await import("node:inspector");
  new Session().connect();
});
await attempt("node: use Node's inside", () => void process.binding("fs"));
await attempt("node: write a report", () => void process.report.writeReport(`${folder}/report.json`));
await attempt("node: write a heap snapshot", async () => {
  (await import("node:v8")).writeHeapSnapshot(`${folder}/heap`);
});
await attempt("node: change the folder", () => process.chdir(folder));
for (const name of ["environ", "mem", "maps", "cwd/x"]) {
  await attempt(`node: read ${name} of the daemon`, () => void fs.readFileSync(`/proc/${daemon}/${name}`));
}
await attempt("node: read descriptors of the daemon", () => void fs.readdirSync(`/proc/${daemon}/fd`));

// What Node lets pass: other processes, and whatever a thread does that was started with other flags.
await attempt("processes: see the daemon", () => void process.kill(daemon, 0));
await attempt("processes: stop the daemon with the debugger's signal", () =>
  process["_debugProcess"](daemon),
);
const free = { execArgv: [] };
await attempt("processes: read the daemon's environment", () =>
  inWorker('require("node:fs").readFileSync(`/proc/${workerData.daemon}/environ`)', free),
);
await attempt("processes: read the daemon's memory", () =>
  inWorker('require("node:fs").openSync(`/proc/${workerData.daemon}/mem`)', free),
);
await attempt("network: connect", () =>
  inWorker(
    `await new Promise((resolve, reject) => require("node:net").connect(workerData.port, "127.0.0.1")
       .on("connect", resolve).on("error", reject));`,
    free,
  ),
);
await attempt("files: read a foreign file", () =>
  inWorker('require("node:fs").readFileSync(workerData.secret)', free),
);
await attempt("files: write a file", () =>
  inWorker('require("node:fs").writeFileSync(workerData.folder + "/written", "x")', free),
);
await attempt("files: make a database", () =>
  inWorker(
    'new (require("node:sqlite").DatabaseSync)(workerData.folder + "/database").exec("create table a (b)")',
    { execArgv: ["--experimental-sqlite"] },
  ),
);
await attempt("files: connect to a socket in a folder", () =>
  inWorker(
    `await new Promise((resolve, reject) => require("node:net").connect(workerData.socket)
       .on("connect", resolve).on("error", reject));`,
    free,
  ),
);
await attempt("calls: start a process", () =>
  inWorker('require("node:child_process").execFileSync(process.execPath, ["-v"])', free),
);
await attempt("calls: make a socket", () =>
  inWorker(
    'await new Promise((resolve, reject) => require("node:net").createServer().on("error", reject).listen(0, resolve))',
    free,
  ),
);

fs.writeSync(1, JSON.stringify({ results, environment: process.env }));
process.exit();
