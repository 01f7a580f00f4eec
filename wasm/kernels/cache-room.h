// Finds the KV cache cells for a step. llama.cpp finds cells for each batch of a step, adds the batch to the records of cells,
// so that the next one gets others, and removes all of them again. A step is nearly always one batch.
#pragma once
#include "server.h"

enum { BATCH_BYTES = 104, CACHE_SLOT_BYTES = 56 }; // llama_ubatch, llama_kv_cache::slot_info
typedef struct {
  int32_t first, last; // streams
  token_list streams;
  record_list cells; // for each stream; empty: no cells are free
} cache_slot;
_Static_assert(sizeof(cache_slot) == CACHE_SLOT_BYTES, "llama_kv_cache::slot_info");

extern void original_prepare_cache(record_list *slots, void *cache, const record_list *batches);
extern void find_cache_slot(cache_slot *slot, void *cache, const uint8_t *batch);
extern void *allocate_memory(uint64_t bytes);
extern void free_memory(void *memory);

// llama_kv_cache::prepare: a slot for each batch, or none at all.
void kernel_prepare_cache(record_list *slots, void *cache, const record_list *batches) {
  if (batches->end - batches->begin != BATCH_BYTES) {
    original_prepare_cache(slots, cache, batches);
    return;
  }
  cache_slot *slot = allocate_memory(sizeof *slot);
  find_cache_slot(slot, cache, batches->begin);
  if (slot->cells.begin == slot->cells.end) {
    // An empty slot_info has no allocations.
    free_memory(slot);
    *slots = (record_list){ 0, 0, 0 };
    return;
  }
  uint8_t *const begin = (uint8_t *)slot, *const end = begin + sizeof *slot;
  *slots = (record_list){ begin, end, end };
}
