import { createEngineStarter } from "../../src/engine/start-engine.ts";
import { findCandidates } from "../../src/engine/sandbox/sandbox-finder.ts";
import { collect, engineSpec, NEVER, promptRequest, startEngine } from "./engine-fixture.ts";
import { generated } from "./generated.ts";

/**
 * A daemon to be killed: starts an engine, keeps it busy and prints its process id. Arguments: the model's file, the
 * number of threads, and the name of the sandbox around it, if any.
 */
const [, , modelFile = "", threads = "1", sandboxName] = process.argv;
const sandbox = findCandidates().sandboxes.find(({ name }) => name === sandboxName);
const start = sandbox
  ? createEngineStarter({ loadTimeoutMs: 120_000, stallTimeoutMs: 120_000, findSandbox: async () => sandbox })
  : startEngine;
const engine = await start(engineSpec(modelFile, { threads: Number(threads), contextShift: true }));
const { maxTokens: _, ...endless } = promptRequest("On and on", { sampling: { ignoreEos: true } });
const generation = generated(engine, endless, NEVER);
await generation.next();
console.log(engine.pid);
await collect(generation);
