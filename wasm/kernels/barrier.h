// Where threads wait for each other: after each operator, and within some. llama.cpp spins until the last one arrives,
// and keeps doing so when that one has no processor because the spinning thread has it: two threads on a machine that
// is busy otherwise then come to a few tokens a second. Ours spin for about as long as threads of one operator differ
// (some 50 µs), then sleep until they are woken, which leaves the processor to whoever holds them up.
#pragma once
#include "simd.h"
#include "tensor.h"

// The parts of ggml_threadpool that barriers and steps use; its layout is that of llama.cpp b11364.
typedef struct {
  uint8_t unused_a[88];
  const graph *nodes; // that are computed
  void *plan;
  int32_t graph; // low 16 bits: threads that compute; the rest counts graphs
  uint8_t unused_b[20];
  int32_t arrived;
  uint8_t unused_c[60];
  int32_t passed; // counts barriers
  uint8_t unused_d[68];
  int32_t left_at; // the node before which all threads leave the graph, or -1
  uint8_t unused_e[20];
  uint32_t poll; // how long a thread without work spins for some before it sleeps, in units of 131,072 rounds
  int32_t status; // of the graph
} threadpool;

_Static_assert(offsetof(threadpool, nodes) == 88, "ggml_threadpool.cgraph");
_Static_assert(offsetof(threadpool, graph) == 104, "ggml_threadpool.n_graph");
_Static_assert(offsetof(threadpool, arrived) == 128, "ggml_threadpool.n_barrier");
_Static_assert(offsetof(threadpool, passed) == 192, "ggml_threadpool.n_barrier_passed");
_Static_assert(offsetof(threadpool, left_at) == 264, "ggml_threadpool.abort");
_Static_assert(offsetof(threadpool, poll) == 288, "ggml_threadpool.poll");
_Static_assert(offsetof(threadpool, status) == 292, "ggml_threadpool.ec");

// A round of the loop takes one to two nanoseconds.
enum { SPINS = 32768, SLEEPERS_ADDRESS = 32 };

// Threads that sleep at a barrier. Below the module's data, where the toolchain puts nothing.
#define SLEEPERS ((int32_t *)SLEEPERS_ADDRESS)

// The last thread has arrived. Waking takes a call of the engine's, so it is done only where somebody sleeps: a thread
// that is not counted yet has still to compare `passed`, and finds it changed.
void kernel_release_barrier(threadpool *pool) {
  __atomic_fetch_add(&pool->passed, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(SLEEPERS, __ATOMIC_SEQ_CST) > 0) __builtin_wasm_memory_atomic_notify(&pool->passed, 0x7fffffff);
}

void kernel_await_barrier(threadpool *pool, int32_t passed) {
  for (int i = 0; i < SPINS; i++) {
    if (__atomic_load_n(&pool->passed, __ATOMIC_SEQ_CST) != passed) return;
  }
  __atomic_fetch_add(SLEEPERS, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&pool->passed, __ATOMIC_SEQ_CST) == passed) {
    __builtin_wasm_memory_atomic_wait32(&pool->passed, passed, -1);
  }
  __atomic_fetch_sub(SLEEPERS, 1, __ATOMIC_SEQ_CST);
}

// ggml_barrier
void kernel_barrier(threadpool *pool) {
  const int32_t threads = __atomic_load_n(&pool->graph, __ATOMIC_RELAXED) & 0xffff;
  if (threads == 1) return;
  const int32_t passed = __atomic_load_n(&pool->passed, __ATOMIC_SEQ_CST);
  if (__atomic_fetch_add(&pool->arrived, 1, __ATOMIC_SEQ_CST) != threads - 1) {
    kernel_await_barrier(pool, passed);
    return;
  }
  __atomic_store_n(&pool->arrived, 0, __ATOMIC_SEQ_CST);
  kernel_release_barrier(pool);
}

// ggml_graph_compute_secondary_thread, whose state names the pool. Between two graphs it would spin for some 10 ms.
extern uint64_t original_secondary_thread(uint8_t *state);

uint64_t kernel_secondary_thread(uint8_t *state) {
  enum { POOL_AT = 528 };
  __atomic_store_n(&(*(threadpool **)(state + POOL_AT))->poll, 1, __ATOMIC_RELAXED);
  return original_secondary_thread(state);
}
