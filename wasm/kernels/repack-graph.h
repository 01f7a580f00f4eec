// Decides when weights are repacked, so that no other code sees repacked weights. llama.cpp passes each context's largest
// graphs to ggml_backend_sched_reserve once the weights are in memory: the matrices of their products are repacked there.
// Before each graph is computed, it is passed to ggml_graph_plan: weights that it uses in any other way are restored first,
// permanently. Repacked weights have a flag in their tensor, which exists as long as the model.
//
// Only if the CPU is the only backend: any other would copy repacked weights.
#pragma once
#include "get-rows.h"
#include "mul-mat-id.h"
#include "repacked-layout.h"

enum { BUFFER_OF_WEIGHTS = 1 };
// The rows of a tile are copied to the stack, of which llama.cpp's thread has 5 MB.
enum { MOST_BYTES_OF_TILE = 1 << 20 };

INLINE int is_weight_to_repack(const tensor *w) {
  const repacked_format format = format_of_repacked(w->type);
  return format.block && w->op == OP_NONE && !w->view_src && w->data && w->buffer &&
         w->buffer->usage == BUFFER_OF_WEIGHTS && w->ne[0] % format.weights == 0 && w->ne[1] % TILE_ROWS == 0 &&
         w->ne[3] == 1 && w->nb[2] == w->nb[1] * (size_t)w->ne[1] && w->nb[1] == (size_t)(w->ne[0] / format.weights) * format.block &&
         w->nb[1] * TILE_ROWS <= MOST_BYTES_OF_TILE;
}

// True for products of one matrix, or of all experts of a mixture, which are one tensor. Other products with several matrices
// are not supported.
INLINE int is_product(const tensor *node) {
  if (node->op == OP_MUL_MAT_ID) return experts_fit(node);
  return node->op == OP_MUL_MAT && node->op_params[1] == 0 && quantized_fits(node, node->src[0], node->src[1]);
}

INLINE int is_look_up(const tensor *node) {
  const tensor *rows = node->src[1];
  return node->op == OP_GET_ROWS && node->src[0]->ne[2] == 1 && rows->type == TYPE_I32 && rows->ne[1] == 1 && rows->ne[2] == 1 && rows->ne[3] == 1 &&
         rows->nb[0] == sizeof(int32_t) && node->type == TYPE_F32 && node->nb[0] == sizeof(float);
}

INLINE uint8_t *end_of_weights(const tensor *w) { return w->data + w->nb[2] * (size_t)w->ne[2]; }

NOINLINE void repack_tensor(tensor *w) {
  const size_t bytes = w->nb[1] * TILE_ROWS;
  uint8_t *copy = __builtin_alloca(bytes);
  const constants c = make_constants(ZERO_I32);
  for (uint8_t *x = w->data; x < end_of_weights(w); x += bytes) {
    __builtin_memcpy(copy, x, bytes);
    repack_rows(w->type, copy, w->nb[1], w->ne[0], x, c);
  }
  w->flags |= FLAG_REPACKED;
}

NOINLINE void put_back(tensor *w) {
  const size_t bytes = w->nb[1] * TILE_ROWS;
  uint8_t *copy = __builtin_alloca(bytes);
  for (uint8_t *x = w->data; x < end_of_weights(w); x += bytes) {
    __builtin_memcpy(copy, x, bytes);
    for (int r = 0; r < TILE_ROWS; r++) row_of_repacked(w->type, copy, r, w->ne[0], x + (size_t)r * w->nb[1]);
  }
  w->flags &= ~FLAG_REPACKED;
}

// Restores weights that the graph uses in a way that is impossible with repacked ones; they are not repacked again.
NOINLINE void leave_what_others_read(const graph *g) {
  for (int32_t i = 0; i < g->n_nodes; i++) {
    const tensor *node = g->nodes[i];
    for (int s = 0; s < MOST_SOURCES; s++) {
      tensor *source = node->src[s];
      if (!source) continue;
      tensor *w = source->view_src ? source->view_src : source;
      if (!is_weight_to_repack(w) || (s == 0 && source == w && (is_product(node) || is_look_up(node)))) continue;
      if (w->flags & FLAG_REPACKED) put_back(w);
      w->flags |= FLAG_LEFT;
    }
  }
}

NOINLINE void repack_weights(const graph *g) {
  leave_what_others_read(g);
  for (int32_t i = 0; i < g->n_nodes; i++) {
    tensor *node = g->nodes[i];
    if (!is_product(node)) continue;
    tensor *w = node->src[0];
    if (is_weight_to_repack(w) && !(w->flags & (FLAG_REPACKED | FLAG_LEFT))) repack_tensor(w);
  }
}

// Looks up rows of repacked weights, for an embedding that is also the output matrix.
INLINE void look_rows_up(const compute_params *params, tensor *out, const tensor *w, const tensor *rows) {
  const int64_t k = w->ne[0];
  uint8_t *row = (uint8_t *)align_up((size_t)params->work) + align_up(w->nb[1]) * (size_t)params->ith;
  for (int64_t i = params->ith; i < rows->ne[0]; i += params->nth) {
    const int32_t at = ((const int32_t *)rows->data)[i];
    if (at < 0 || at >= w->ne[1]) __builtin_trap();
    float *to = (float *)(out->data + (size_t)i * out->nb[1]);
    row_of_repacked(w->type, w->data + w->nb[1] * (size_t)(at / TILE_ROWS * TILE_ROWS), at % TILE_ROWS, k, row);
    get_row(w->type, to, row, k);
  }
}

// Bytes of work buffer that the graph's products with repacked weights and with experts need.
NOINLINE uint64_t work_size_of_products(const graph *g, int32_t threads) {
  uint64_t most = 0;
  for (int32_t i = 0; i < g->n_nodes; i++) {
    const tensor *node = g->nodes[i];
    size_t size = 0;
    if (node->op == OP_MUL_MAT_ID && experts_fit(node)) size = expert_work_size(node, threads);
    if (node->op == OP_MUL_MAT && node->src[0]->flags & FLAG_REPACKED) size = repacked_work_size(node->src[0], node->src[1]);
    most = size > most ? size : most;
  }
  return most;
}
