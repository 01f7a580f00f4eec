// Freezes the clock while a sampler accepts the tokens of a prompt. llama.cpp reads it four times for each token, to measure
// samplers; the clock is a call of the script, which takes most of that time.
#pragma once
#include "server.h"

typedef struct { int64_t seconds, nanoseconds; } clock_time;

#define CLOCK_IS_HELD (*(uint8_t *)HELD_CLOCK_CELL)
#define HELD_TIME (*(clock_time *)HELD_TIME_CELL)

enum { MONOTONIC_CLOCK = 1 };

extern int32_t original_clock(int32_t which, clock_time *time);
extern void original_init_sampler(const server_slot *slot);

// __clock_gettime. Other threads meanwhile get the same time, which is a few milliseconds old at most.
int32_t kernel_clock(int32_t which, clock_time *time) {
  if (which != MONOTONIC_CLOCK || !CLOCK_IS_HELD) return original_clock(which, time);
  *time = HELD_TIME;
  return 0;
}

// server_slot::init_sampler()
void kernel_init_sampler(const server_slot *slot) {
  CLOCK_IS_HELD = original_clock(MONOTONIC_CLOCK, &HELD_TIME) == 0;
  original_init_sampler(slot);
  CLOCK_IS_HELD = 0;
}
