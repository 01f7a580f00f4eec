import { MEMORY_CELLS } from "../../../wasm/memory-cells.ts";
import type { TextPatch } from "../core/worker-patches.ts";
import { openCommandStream } from "./calls/command-stream.ts";
import { openGraphRecordings } from "./calls/graph-recordings.ts";
import { openParallelPrograms } from "./calls/parallel-programs.ts";

/** GPUBufferUsage.STORAGE | UNIFORM: what programs read and write. */
const SEEN_BY_PROGRAMS = 0xc0;

/**
 * Graphs whose commands are kept: one for each number of slots that decode, and for the steps of a prompt of some thousand
 * tokens. Each takes 1 MB of the heap for a model of 28 blocks, and a bind group for each program once it is repeated.
 */
const MOST_RECORDINGS = 12;

/** The engine has a request rehearsed: what it asks of a GPU is compiled, and does not run. */
const IS_REHEARSAL = `getHeapU8()[${MEMORY_CELLS.gpuRehearsal}] === 1`;

/** Patches wllama's part of the worker's script for {@link commandStreamPatches}. */
export const COMPILED_PROGRAMS_PATCHES: readonly TextPatch[] = [
  {
    purpose: "compile what a rehearsed request needs, and have it before the next one runs",
    find: "// copy data to wasm heap",
    replace: `await daybreakPrograms.rehearse(${IS_REHEARSAL});
    // copy data to wasm heap`,
  },
  {
    purpose: "have all programs compiled when a model has been loaded",
    find: "// length of output buffer is written at the first 4 bytes of input buffer",
    replace: `await daybreakPrograms.rehearse(${IS_REHEARSAL});
    // length of output buffer is written at the first 4 bytes of input buffer`,
  },
];

/**
 * Patches llama.cpp's script to encode the stream of programs that our kernels write, in place of one call for each thing that a
 * program needs, and to repeat what it has encoded.
 * @param replays false: every graph is encoded each time
 */
export function commandStreamPatches(replays: boolean): readonly TextPatch[] {
  const mostRecordings = replays ? MOST_RECORDINGS : 0;
  const cells = {
    stream: MEMORY_CELLS.gpuStream,
    words: MEMORY_CELLS.gpuStreamWords,
    pass: MEMORY_CELLS.gpuPass,
  };
  const ask = "function _wgpuInstanceHasWGSLLanguageFeature(instance,featureEnumValue){";
  return [
    {
      purpose: "know the device that programs run on",
      find: "var device=WebGPU.getJsObject(devicePtr);var ptr=_emwgpuCreateCommandEncoder(0n);",
      replace:
        "var device=WebGPU.getJsObject(devicePtr);daybreakStream.use(device);var ptr=_emwgpuCreateCommandEncoder(0n);",
    },
    {
      purpose: "encode programs at the end of their pass",
      find: "var pass=WebGPU.getJsObject(passPtr);pass.end()",
      replace: "var pass=WebGPU.getJsObject(passPtr);daybreakStream.end(passPtr);pass.end()",
    },
    {
      purpose: "forget what was known of handles when a buffer is made",
      find: "buffer=device.createBuffer(desc)",
      replace: `if(desc.usage&${SEEN_BY_PROGRAMS})daybreakStream.forget();buffer=device.createBuffer(desc)`,
    },
    {
      purpose: "forget it when a buffer is destroyed",
      find: "buffer.destroy()",
      replace: `if(buffer.usage&${SEEN_BY_PROGRAMS})daybreakStream.forget();buffer.destroy()`,
    },
    {
      purpose: "forget it when a program is compiled",
      find: "WebGPU.Internals.jsObjectInsert(ptr,device.createComputePipeline(desc))",
      replace:
        "daybreakStream.forget();WebGPU.Internals.jsObjectInsert(ptr,daybreakPrograms.compile(device,desc))",
    },
    ...[
      ["runs it", "var pipeline=WebGPU.getJsObject(pipelinePtr);pass.setPipeline(pipeline)"],
      [
        "asks for its layout",
        "var pipeline=WebGPU.getJsObject(pipelinePtr);var ptr=_emwgpuCreateBindGroupLayout",
      ],
    ].map(([what, find = ""]) => ({
      purpose: `have a program compiled when llama.cpp ${what} itself`,
      find,
      replace: find.replace("WebGPU.getJsObject", "daybreakPrograms.ready"),
    })),
    ...[
      ["a write", "queue.writeBuffer(buffer,bufferOffset"],
      ["a copy", "commandEncoder.copyBufferToBuffer(src"],
      ["a program of its own", "pass.setPipeline(pipeline)"],
      ["a wait", "return Asyncify.handleAsync(async()=>{var promises=["],
    ].map(([what, find = ""]) => ({
      purpose: `record no graph with ${what}`,
      find,
      replace: `daybreakStream.unexpected();${find}`,
    })),
    // The last one, so that the others look for their texts in llama.cpp's script alone.
    {
      purpose: "answer the kernels that describe programs",
      find: ask,
      replace: `var daybreakPrograms=globalThis.daybreakPrograms=(${openParallelPrograms.toString()})(WebGPU.Internals.jsObjects);var daybreakStream=(${openCommandStream.toString()})({cells:${JSON.stringify(cells)},mostRecordings:${mostRecordings},openRecordings:${openGraphRecordings.toString()},words:()=>(growMemViews(),HEAPU32),begin:daybreakPrograms.begin,isDeaf:daybreakPrograms.areCompiling,pass:WebGPU.getJsObject,pipeline:WebGPU.getJsObject,buffer:WebGPU.getJsObject});${ask}if(!instance)return daybreakStream.ask(featureEnumValue);`,
    },
  ];
}
