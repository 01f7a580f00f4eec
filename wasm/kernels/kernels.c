// The kernels as one translation unit, and the functions that replace those of llama.cpp. The build script beside this file
// compiles it; wasm/changes.ts lists which function of the module each one replaces.
#include "attention-mask.h"
#include "cache-room.h"
#include "grammar.h"
#include "draft-model.h"
#include "gpu-replay.h"
#include "gpu-upload.h"
#include "graph-thread.h"
#include "held-clock.h"
#include "recursion.h"
#include "slot-state.h"
#include "tensor-names.h"
#include "vec-dots.h"

extern void original_mul_mat(const compute_params *params, tensor *out);
extern void original_graph_plan(uint64_t *plan, const graph *g, int32_t threads, void *threadpool);
extern int32_t original_sched_reserve(void *scheduler, const graph *g);

// ggml_backend_sched_reserve, called for a new context with a graph of its largest size.
int32_t kernel_sched_reserve(void *scheduler, const graph *g) {
  const int32_t backends = ((const int32_t *)scheduler)[1];
  if (backends == 1) repack_weights(g);
  return original_sched_reserve(scheduler, g);
}

// ggml_graph_plan returns a ggml_cplan, whose first field is the size of the work buffer. Panels and activations of
// our kernels need more than llama.cpp's own: half as much again, a fixed part and a part for each thread.
void kernel_graph_plan(uint64_t *plan, const graph *g, int32_t threads, void *threadpool) {
  enum { FIXED = 4 << 20, PER_THREAD = 1 << 20 };
  leave_what_others_read(g);
  original_graph_plan(plan, g, threads, threadpool);
  plan[0] += plan[0] / 2 + FIXED + (uint64_t)threads * PER_THREAD;
  const uint64_t products = work_size_of_products(g, threads);
  if (plan[0] < products) plan[0] = products;
}

// ggml_compute_forward_mul_mat. op_params[1] is a hint that asks for another algorithm (a Hadamard transform).
void kernel_mul_mat(const compute_params *params, tensor *out) {
  const tensor *w = out->src[0], *x = out->src[1];
  if (w->flags & FLAG_REPACKED) {
    mul_mat_repacked(params, out, w, x);
    return;
  }
  if (!params->use_reference && out->op_params[1] == 0) {
    if (float_fits(out, w, x) && mul_mat_float(params, out, w, x)) return;
    if (quantized_fits(out, w, x) && mul_mat_quantized(params, out, w, x)) return;
  }
  original_mul_mat(params, out);
}
