// A graph that a GPU has computed before is not encoded again: the engine's script replays its recording. A copy of all
// data that encoding reads is compared: each node, its sources, the tensors of which they are views, and so on. Encoding does
// not read data in buffers.
#pragma once
#include "gpu-commands.h"
#include "tensor.h"

enum { TENSOR_BYTES = offsetof(tensor, data) + 8, MOST_RECORDINGS = 64 };

typedef struct { const tensor *at; uint8_t kept[TENSOR_BYTES]; } kept_tensor;
// A buffer of ggml's, with the GPU's buffer behind it.
typedef struct { const backend_buffer *at; uint64_t context, handle; } kept_buffer;
// Index of a node in the graph's table of uses, which decides whether operators are fused.
typedef struct { uint64_t place; int32_t uses; } kept_use;

typedef struct {
  int32_t nodes, tensors, buffers; // no nodes: there is no recording
  void *backend, *context;
  uint64_t last_used, bytes;
  uint8_t *memory; // const tensor *[nodes], kept_use[nodes], kept_tensor[tensors], kept_buffer[buffers]
  const tensor **node_list;
  kept_use *use_list;
  kept_tensor *tensor_list;
  kept_buffer *buffer_list;
} recording;

typedef struct {
  int32_t most;
  uint64_t clock, places, most_seen;
  const void **seen; // a table of addresses, `places` long
  recording recordings[MOST_RECORDINGS];
} gpu_replay;

#define GPU_REPLAY (*(gpu_replay **)GPU_REPLAY_CELL)

extern int32_t original_gpu_graph(void *backend, const graph *g);

static gpu_replay *replay_state(void) {
  if (GPU_REPLAY) return GPU_REPLAY;
  if (!gpu_stream()) return 0;
  gpu_replay *state = try_to_allocate(sizeof *state);
  if (!state) return 0;
  __builtin_memset(state, 0, sizeof *state);
  state->most = ask_gpu_script(0, ASK_SCRIPT) & ANSWERS_RECORDINGS;
  if (state->most > MOST_RECORDINGS) state->most = MOST_RECORDINGS;
  return GPU_REPLAY = state;
}

static int same_bytes(const void *a, const void *b) {
  const v128_t *x = a, *y = b;
  v128_t difference = wasm_i32x4_splat(0);
  for (uint64_t i = 0; i < TENSOR_BYTES / 16; i++)
    difference = wasm_v128_or(difference, wasm_v128_xor(wasm_v128_load(x + i), wasm_v128_load(y + i)));
  return !wasm_v128_any_true(difference);
}
_Static_assert(TENSOR_BYTES % 16 == 0, "a tensor is compared in whole vectors");

INLINE uint64_t buffer_context(const backend_buffer *b) { return FIELD(uint64_t, b, AT_GGML_BACKEND_BUFFER_CONTEXT); }
// The first field of a context is the handle of the GPU's buffer.
INLINE uint64_t buffer_handle(uint64_t context) { return context ? *(const uint64_t *)context : 0; }

static int has_place(const graph *g, uint64_t place, const tensor *t) {
  return place < g->uses.places && g->uses.keys[place] == t;
}

// True if encoding the graph would give the recorded programs.
static int same_graph(const recording *r, void *backend, const graph *g) {
  if (r->nodes != g->n_nodes || r->backend != backend || r->context != FIELD(void *, backend, AT_GGML_BACKEND_CONTEXT)) return 0;
  for (int32_t i = 0; i < r->nodes; i++) {
    if (r->node_list[i] != g->nodes[i]) return 0;
    const kept_use use = r->use_list[i];
    if (!has_place(g, use.place, g->nodes[i]) || g->use_counts[use.place] != use.uses) return 0;
  }
  for (int32_t i = 0; i < r->tensors; i++)
    if (!same_bytes(r->tensor_list[i].at, r->tensor_list[i].kept)) return 0;
  for (int32_t i = 0; i < r->buffers; i++) {
    const kept_buffer b = r->buffer_list[i];
    if (buffer_context(b.at) != b.context || buffer_handle(b.context) != b.handle) return 0;
  }
  return 1;
}

// Adds an address to the set; 1: it is new, 0: it was present, -1: the set is full.
static int add_seen(gpu_replay *s, const void *address, uint64_t *count) {
  uint64_t at = ((uint64_t)address >> 4) * 0x9e3779b97f4a7c15ull >> 20;
  for (;; at++) {
    const void **place = s->seen + (at & (s->places - 1));
    if (*place == address) return 0;
    if (*place) continue;
    if (++*count > s->most_seen) return -1;
    *place = address;
    return 1;
  }
}

// The table may be larger than this graph needs, because it was made for another one.
static int make_seen(gpu_replay *s, uint64_t most) {
  uint64_t places = 1024;
  s->most_seen = most;
  while (places < 2 * most) places *= 2;
  if (places > s->places) {
    free_memory(s->seen);
    s->places = 0;
    s->seen = try_to_allocate(places * sizeof *s->seen);
    if (!s->seen) return 0;
    s->places = places;
  }
  __builtin_memset(s->seen, 0, s->places * sizeof *s->seen);
  return 1;
}

// Tensors and buffers for each node: itself, and weights or views that no other has.
enum { TENSORS_OF_NODE = 4 };

static int keep_tensor(gpu_replay *s, recording *r, const tensor *t, uint64_t *count) {
  for (; t; t = t->view_src) {
    const int isNew = add_seen(s, t, count);
    if (isNew <= 0) return isNew == 0;
    kept_tensor *kept = r->tensor_list + r->tensors++;
    kept->at = t;
    __builtin_memcpy(kept->kept, t, TENSOR_BYTES);
    if (!t->buffer) continue;
    const int isNewBuffer = add_seen(s, t->buffer, count);
    if (isNewBuffer < 0) return 0;
    const uint64_t context = buffer_context(t->buffer);
    if (isNewBuffer) r->buffer_list[r->buffers++] = (kept_buffer){ t->buffer, context, buffer_handle(context) };
  }
  return 1;
}

static uint64_t place_of(const graph *g, const tensor *t) {
  if (!g->uses.places) return 0;
  uint64_t place = ((uint64_t)t >> 4) % g->uses.places;
  for (uint64_t i = 0; i < g->uses.places && g->uses.keys[place] != t; i++) place = (place + 1) % g->uses.places;
  return place;
}

// Copies the data that encoding reads of a graph into reused memory; 0: it does not fit.
static int keep_graph(gpu_replay *s, recording *r, void *backend, const graph *g) {
  r->nodes = 0;
  const uint64_t nodes = (uint64_t)g->n_nodes, most = nodes * TENSORS_OF_NODE + 64;
  const uint64_t bytes = nodes * (sizeof(void *) + sizeof(kept_use)) + most * (sizeof(kept_tensor) + sizeof(kept_buffer));
  if (!make_seen(s, most)) return 0;
  if (bytes > r->bytes) {
    free_memory(r->memory);
    r->bytes = 0;
    r->memory = try_to_allocate(bytes);
    if (!r->memory) return 0;
    r->bytes = bytes;
  }
  r->node_list = (const tensor **)r->memory;
  r->use_list = (kept_use *)(r->node_list + nodes);
  r->tensor_list = (kept_tensor *)(r->use_list + nodes);
  r->buffer_list = (kept_buffer *)(r->tensor_list + most);
  r->tensors = r->buffers = 0;
  uint64_t count = 0;
  for (uint64_t i = 0; i < nodes; i++) {
    const tensor *t = g->nodes[i];
    const uint64_t place = place_of(g, t);
    if (!has_place(g, place, t)) return 0;
    r->node_list[i] = t;
    r->use_list[i] = (kept_use){ place, g->use_counts[place] };
    if (!keep_tensor(s, r, t, &count)) return 0;
    for (int j = 0; j < MOST_SOURCES; j++)
      if (t->src[j] && !keep_tensor(s, r, t->src[j], &count)) return 0;
  }
  r->backend = backend;
  r->context = FIELD(void *, backend, AT_GGML_BACKEND_CONTEXT);
  r->nodes = g->n_nodes;
  return 1;
}

// ggml_backend_webgpu_graph_compute
int32_t kernel_gpu_graph(void *backend, const graph *g) {
  gpu_replay *s = replay_state();
  if (!s || s->most == 0 || g->n_nodes == 0) return original_gpu_graph(backend, g);
  recording *oldest = s->recordings;
  for (int32_t i = 0; i < s->most; i++) {
    recording *r = s->recordings + i;
    if (r->nodes && same_graph(r, backend, g)) {
      r->last_used = ++s->clock;
      if (ask_gpu_script(0, ASK_REPLAY | i << ASKED_RECORDING)) return 0;
      // The script has dropped the recording.
      r->nodes = 0, oldest = r;
      break;
    }
    if (oldest->nodes && (!r->nodes || r->last_used < oldest->last_used)) oldest = r;
  }
  if (!keep_graph(s, oldest, backend, g)) return original_gpu_graph(backend, g);
  oldest->last_used = ++s->clock;
  const int32_t which = (int32_t)(oldest - s->recordings) << ASKED_RECORDING;
  ask_gpu_script(0, ASK_BEGIN | which);
  const int32_t status = original_gpu_graph(backend, g);
  if (!ask_gpu_script(0, ASK_END | which) || status) oldest->nodes = 0;
  return status;
}
