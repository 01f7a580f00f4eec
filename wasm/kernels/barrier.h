// Barriers, at which threads wait for each other: after each operator, and within some. llama.cpp spins until the last
// thread arrives, even if that thread has no processor because the spinning one occupies it: on a busy machine, two threads
// then reach only a few tokens per second. Ours spin for about as long as threads of one operator differ, and then sleep
// until they are woken, which leaves the processor to the thread that they wait for.
#pragma once
#include "llama-cpp-build.h"
#include "simd.h"
#include "tensor.h"

// Parts of ggml_threadpool that barriers and steps use.
typedef struct {
  uint8_t unused_a[AT_GGML_THREADPOOL_CGRAPH];
  const graph *nodes; // that are computed
  void *plan;
  int32_t graph; // low 16 bits: number of computing threads; the others count graphs
  uint8_t unused_b[AT_GGML_THREADPOOL_N_BARRIER - AT_GGML_THREADPOOL_N_GRAPH - 4];
  int32_t arrived;
  uint8_t unused_c[AT_GGML_THREADPOOL_N_BARRIER_PASSED - AT_GGML_THREADPOOL_N_BARRIER - 4];
  int32_t passed; // counts barriers
  uint8_t unused_d[AT_GGML_THREADPOOL_ABORT - AT_GGML_THREADPOOL_N_BARRIER_PASSED - 4];
  int32_t left_at; // the node before which all threads leave the graph, or -1
  uint8_t unused_e[AT_GGML_THREADPOOL_POLL - AT_GGML_THREADPOOL_ABORT - 4];
  uint32_t poll; // how long a thread without work spins for some before it sleeps, in units of 131,072 rounds
  int32_t status; // of the graph
} threadpool;

_Static_assert(offsetof(threadpool, graph) == AT_GGML_THREADPOOL_N_GRAPH, "ggml_threadpool.n_graph");
_Static_assert(offsetof(threadpool, status) == AT_GGML_THREADPOOL_EC, "ggml_threadpool.ec");

enum { SPINS = 32768 };

// Threads that sleep at a barrier.
#define SLEEPERS ((int32_t *)SLEEPERS_CELL)

// Called when the last thread has arrived. Waking needs a call out of the module, so it is done only if a thread sleeps: a
// thread that is not counted yet will still compare `passed`, and find it changed.
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

// ggml_graph_compute_secondary_thread. Shortens its spinning between two graphs.
extern uint64_t original_secondary_thread(uint8_t *state);

uint64_t kernel_secondary_thread(uint8_t *state) {
  __atomic_store_n(&(*(threadpool **)(state + AT_GGML_COMPUTE_STATE_THREADPOOL))->poll, 1, __ATOMIC_RELAXED);
  return original_secondary_thread(state);
}
