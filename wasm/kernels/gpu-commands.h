// Passes llama.cpp's GPU programs to the engine's script in few calls (src/engine/gpu/calls/command-stream.ts): the programs
// of a compute pass are written into a stream in the heap, which the script reads when the pass ends.
#pragma once
#include "server.h"

#define GPU_STREAM (*(uint32_t **)GPU_STREAM_CELL)
#define GPU_STREAM_WORDS (*(uint32_t *)GPU_STREAM_WORDS_CELL)
#define GPU_PASS (*(uint64_t *)GPU_PASS_CELL) // compute pass of the programs in the stream

// Commands for the script; the bits above hold the number of a recording.
enum { ASK_SCRIPT = 0, ASK_FLUSH = 1, ASK_BEGIN = 2, ASK_END = 3, ASK_REPLAY = 4, ASKED_RECORDING = 8 };
// Answer of the patched script; the low bits hold the maximum number of recordings.
enum { ANSWERS_SCRIPT = 0xdab0000, ANSWERS_RECORDINGS = 0xffff };

// wgpuInstanceHasWGSLLanguageFeature without an instance, which llama.cpp never calls.
extern int32_t ask_gpu_script(void *nothing, int32_t what);
extern void *try_to_allocate(uint64_t bytes);
extern void free_memory(void *memory);

typedef struct {
  uint64_t chain;
  uint32_t binding;
  uint64_t buffer, offset, size, sampler, texture;
} gpu_entry;

// webgpu_dispatch_desc: a program with its parameters and buffers.
typedef struct {
  uint64_t pipeline;
  uint8_t unused[AT_WEBGPU_DISPATCH_DESC_PARAMS - 8];
  const uint32_t *params, *params_end, *params_limit;
  const gpu_entry *entries, *entries_end, *entries_limit;
  uint32_t workgroups[2];
} gpu_program;
_Static_assert(offsetof(gpu_program, entries) == AT_WEBGPU_DISPATCH_DESC_BIND_GROUP_ENTRIES, "webgpu_dispatch_desc.bind_group_entries");
_Static_assert(offsetof(gpu_program, workgroups) == AT_WEBGPU_DISPATCH_DESC_WORKGROUPS, "webgpu_dispatch_desc.workgroups");
_Static_assert(sizeof(gpu_program) == 104 && sizeof(gpu_entry) == 56, "webgpu_dispatch_desc, wgpu::BindGroupEntry");

typedef struct { const gpu_program *begin, *end; } gpu_programs;

// A program in the stream: its number of words, its workgroups, its number of parameters, its key, its parameters. The key
// is its pipeline, the number of its buffers, and the binding, handle, offset and size of each.
enum { PROGRAM_HEAD = 4, KEY_HEAD = 2, KEY_ENTRY = 6 };
enum { STREAM_WORDS = 1 << 16, MOST_PARAMS = 64, MOST_ENTRIES = 64 };
enum { HANDLE_SHIFT = 3 }; // objects are aligned, so that 32 bits are enough for the largest heap

extern int32_t original_gpu_build(void **context, const gpu_programs *programs);

static int fits_stream(const gpu_program *p) {
  if (p->params_end - p->params > MOST_PARAMS || p->entries_end - p->entries > MOST_ENTRIES) return 0;
  for (const gpu_entry *e = p->entries; e < p->entries_end; e++)
    if (e->chain || e->sampler || e->texture || !e->buffer) return 0;
  return 1;
}

// The stream; 0 until the script has confirmed that it reads it.
static uint32_t *gpu_stream(void) {
  if (GPU_STREAM || (ask_gpu_script(0, ASK_SCRIPT) & ~ANSWERS_RECORDINGS) != ANSWERS_SCRIPT) return GPU_STREAM;
  return GPU_STREAM = try_to_allocate(STREAM_WORDS * sizeof(uint32_t));
}

static void flush_gpu_stream(void) {
  if (GPU_STREAM_WORDS) ask_gpu_script(0, ASK_FLUSH);
  GPU_STREAM_WORDS = 0;
}

static uint32_t *write_program(uint32_t *to, const gpu_program *p) {
  uint32_t *const begin = to;
  const uint32_t params = (uint32_t)(p->params_end - p->params);
  to[1] = p->workgroups[0], to[2] = p->workgroups[1], to[3] = params;
  to += PROGRAM_HEAD;
  *to++ = (uint32_t)(p->pipeline >> HANDLE_SHIFT);
  *to++ = (uint32_t)(p->entries_end - p->entries);
  for (const gpu_entry *e = p->entries; e < p->entries_end; e++, to += KEY_ENTRY) {
    to[0] = e->binding, to[1] = (uint32_t)(e->buffer >> HANDLE_SHIFT);
    to[2] = (uint32_t)e->offset, to[3] = (uint32_t)(e->offset >> 32);
    to[4] = (uint32_t)e->size, to[5] = (uint32_t)(e->size >> 32);
  }
  for (uint32_t i = 0; i < params; i++) *to++ = p->params[i];
  begin[0] = (uint32_t)(to - begin);
  return to;
}

// ggml_backend_webgpu_build_multi: adds programs to the current pass, and returns how many.
int32_t kernel_gpu_build(void **context, const gpu_programs *programs) {
  const uint64_t pass = FIELD(uint64_t, *context, AT_WEBGPU_CONTEXT_ACTIVE_COMPUTE_PASS);
  uint32_t *stream = FIELD(uint8_t, *context, AT_WEBGPU_CONTEXT_BATCH_COMPUTE_PASSES) ? gpu_stream() : 0;
  int fits = stream && pass;
  for (const gpu_program *p = programs->begin; p < programs->end && fits; p++) fits = fits_stream(p);
  // Discards programs of a pass that never ended.
  if (pass != GPU_PASS) GPU_STREAM_WORDS = 0;
  GPU_PASS = pass;
  if (!fits) {
    flush_gpu_stream();
    return original_gpu_build(context, programs);
  }
  enum { MOST_WORDS = PROGRAM_HEAD + KEY_HEAD + MOST_ENTRIES * KEY_ENTRY + MOST_PARAMS };
  for (const gpu_program *p = programs->begin; p < programs->end; p++) {
    if (GPU_STREAM_WORDS + MOST_WORDS > STREAM_WORDS) flush_gpu_stream();
    GPU_STREAM_WORDS = (uint32_t)(write_program(stream + GPU_STREAM_WORDS, p) - stream);
  }
  return (int32_t)(programs->end - programs->begin);
}
