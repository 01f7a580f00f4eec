import vm from "node:vm";
import { beforeEach, describe, expect, it } from "vitest";
import {
  openParallelPrograms,
  type ParallelPrograms,
} from "../../../../../src/engine/gpu/calls/parallel-programs.ts";

interface Descriptor {
  readonly name: string;
}

let objects: Record<number, object>;
let programs: ParallelPrograms;
let log: string[];
let answers: PromiseWithResolvers<object>[];
const nameOf = (descriptor: object): string => ("name" in descriptor ? String(descriptor.name) : "?");
const device = {
  createComputePipeline: (descriptor: object): object => {
    log.push(`now ${nameOf(descriptor)}`);
    return { now: nameOf(descriptor) };
  },
  createComputePipelineAsync: (descriptor: object): Promise<object> => {
    log.push(`later ${nameOf(descriptor)}`);
    const answer = Promise.withResolvers<object>();
    answers.push(answer);
    return answer.promise;
  },
};

beforeEach(() => {
  [objects, log, answers] = [{}, [], []];
  // From its text alone, like the engine.
  const open: typeof openParallelPrograms = vm.runInThisContext(`(${openParallelPrograms.toString()})`);
  programs = open(objects);
});

/** Stores an object under a handle, like llama.cpp's script. */
function compile(handle: number, descriptor: Descriptor): void {
  objects[handle] = programs.compile(device, descriptor);
}

describe("programs of a loading model", () => {
  it("are compiled in parallel and replace their placeholders", async () => {
    programs.begin();
    compile(8, { name: "a" });
    compile(16, { name: "b" });
    expect(log).toEqual(["later a", "later b"]);
    expect(programs.areCompiling()).toBe(true);
    const settled = programs.settle();
    answers[1]?.resolve({ compiled: "b" });
    answers[0]?.resolve({ compiled: "a" });
    await settled;
    expect(objects).toEqual({ 8: { compiled: "a" }, 16: { compiled: "b" } });
    expect(programs.areCompiling()).toBe(false);
  });

  it("are compiled again after a failure, for the error message", async () => {
    programs.begin();
    compile(8, { name: "bad" });
    answers[0]?.reject(new Error("no"));
    await programs.settle();
    expect(log).toEqual(["later bad", "now bad"]);
    expect(objects[8]).toEqual({ now: "bad" });
  });

  it("are compiled synchronously when llama.cpp runs one itself", async () => {
    programs.begin();
    compile(8, { name: "clear" });
    expect(programs.ready(8)).toEqual({ now: "clear" });
    answers[0]?.resolve({ compiled: "clear" });
    await programs.settle();
    expect(objects[8]).toEqual({ now: "clear" });
    expect(programs.ready(8)).toBe(objects[8]);
  });

  it("do not replace another object that got the same handle", async () => {
    programs.begin();
    compile(8, { name: "a" });
    objects[8] = { buffer: true };
    answers[0]?.resolve({ compiled: "a" });
    await programs.settle();
    expect(objects[8]).toEqual({ buffer: true });
  });

  it("are compiled one by one before and after loading, and without our kernels", async () => {
    compile(8, { name: "a" });
    await programs.settle();
    programs.begin();
    await programs.settle();
    programs.begin();
    compile(16, { name: "b" });
    expect(log).toEqual(["now a", "now b"]);
    expect(programs.areCompiling()).toBe(false);
  });

  it("are compiled in parallel during a warm-up request, and ready for the next request", async () => {
    programs.begin();
    await programs.settle();
    await programs.rehearse(true);
    expect(programs.areCompiling()).toBe(true);
    compile(8, { name: "a" });
    await programs.rehearse(true);
    compile(16, { name: "b" });
    expect(log).toEqual(["later a", "later b"]);
    const rehearsed = programs.rehearse(false);
    for (const [at, { resolve }] of answers.entries()) resolve({ compiled: at });
    await rehearsed;
    expect(objects).toEqual({ 8: { compiled: 0 }, 16: { compiled: 1 } });
    expect(programs.areCompiling()).toBe(false);
  });

  it("are compiled one by one in a warm-up without our kernels", async () => {
    await programs.rehearse(true);
    compile(8, { name: "a" });
    expect(log).toEqual(["now a"]);
    expect(programs.areCompiling()).toBe(false);
  });
});
