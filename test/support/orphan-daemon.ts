import { collect, engineSpec, NEVER, promptRequest, startEngine } from "./engine-fixture.ts";

/**
 * A daemon to be killed: starts an engine, keeps it busy and prints its process id.
 * Arguments: the model's file, the number of threads.
 */
const [, , modelFile = "", threads = "1"] = process.argv;
const engine = await startEngine(engineSpec(modelFile, { threads: Number(threads), contextShift: true }));
const { maxTokens: _, ...endless } = promptRequest("On and on", { sampling: { ignoreEos: true } });
const generation = engine.generate(endless, NEVER);
await generation.next();
console.log(engine.pid);
await collect(generation);
