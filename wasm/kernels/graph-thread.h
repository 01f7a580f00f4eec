// Loop of each thread over the nodes of a graph; all threads work on the same node. llama.cpp's own function computes single
// nodes that our kernels do not support.
#pragma once
#include "barrier.h"
#include "operators.h"
#include "steps.h"

// The part of ggml_cplan that threads read.
typedef struct {
  uint64_t work_size;
  uint8_t *work;
  uint8_t unused[AT_GGML_CPLAN_USE_REF - 16];
  uint8_t use_reference;
} graph_plan;

// ggml_compute_state, followed by the graph for llama.cpp's function.
typedef struct {
  uint8_t unused[AT_GGML_COMPUTE_STATE_THREADPOOL];
  threadpool *pool;
  int32_t thread;
  graph nodes_left;
} thread_state;

_Static_assert(offsetof(thread_state, thread) == AT_GGML_COMPUTE_STATE_ITH, "ggml_compute_state.ith");

void kernel_mul_mat(const compute_params *params, tensor *out);
extern void original_graph_thread(thread_state *state);

// Called by llama.cpp's function instead of reading the graph from the thread pool.
const graph *kernel_graph_of(const thread_state *state) { return &state->nodes_left; }

INLINE int is_computed(const tensor *node) {
  const int only_seen_otherwise = node->op >= OP_RESHAPE && node->op <= OP_TRANSPOSE;
  return node->op != OP_NONE && !only_seen_otherwise && node->flags & FLAG_COMPUTE;
}

INLINE int is_empty(const tensor *t) { return t->ne[0] == 0 || t->ne[1] == 0 || t->ne[2] == 0 || t->ne[3] == 0; }

// Computes the nodes at `nodes`; returns how many, or 0 to leave the first one to llama.cpp.
INLINE int32_t compute_nodes(const compute_params *params, tensor *const *nodes, int32_t count) {
  tensor *node = nodes[0];
  if (is_empty(node)) return 1;
  // Called directly: eight bytes more or less of V8's stack halve or double the time of attention's products (V8 13.6 on
  // x64).
  if (node->op == OP_MUL_MAT) {
    kernel_mul_mat(params, node);
    return 1;
  }
  if (!params->use_reference && node->op == OP_RMS_NORM && count > 1 && norm_fits(node) && multiplies_norm(nodes[1], node)) {
    normalize(params, node, nodes[1]->src[1]);
    return 2;
  }
  return kernel_operator(params, node);
}

// ggml_graph_compute_thread. All threads leave the graph before the node that the first one has named while they were at an
// earlier one.
void kernel_graph_thread(const thread_state *state) {
  threadpool *pool = state->pool;
  const graph_plan *plan = pool->plan;
  const compute_params params = {state->thread, __atomic_load_n(&pool->graph, __ATOMIC_RELAXED) & 0xffff,
                                 plan->work_size, plan->work, pool, plan->use_reference};
  tensor **nodes = pool->nodes->nodes;
  const int32_t count = pool->nodes->n_nodes;
  for (int32_t i = 0, left_at; i < count;) {
    if (!is_computed(nodes[i])) {
      i++;
      continue;
    }
    if (params.ith == 0 && is_step_left()) leave_step(pool, i);
    const int32_t done = compute_nodes(&params, nodes + i, count - i), next = i + (done > 0 ? done : 1);
    if (done == 0) {
      // Ends at a barrier of its own.
      thread_state left = {.pool = pool, .thread = state->thread, .nodes_left = {.n_nodes = 1, .nodes = nodes + i}};
      original_graph_thread(&left);
    } else if (next < count) {
      // After the last node, the graph may be freed as soon as the first thread returns.
      kernel_barrier(pool);
    }
    left_at = __atomic_load_n(&pool->left_at, __ATOMIC_RELAXED);
    if (left_at > i && left_at <= next) break;
    i = next;
  }
  kernel_barrier(pool);
}
