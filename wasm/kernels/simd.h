// Vector helpers shared by all kernels: WebAssembly SIMD128 with the relaxed instructions.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <wasm_simd128.h>

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

typedef v128_t vec;

INLINE vec load(const void *p) { return wasm_v128_load(p); }
INLINE void store(void *p, vec v) { wasm_v128_store(p, v); }

#define ZERO_F32 wasm_f32x4_const_splat(0)
#define ZERO_I16 wasm_i16x8_const_splat(0)
#define ZERO_I32 wasm_i32x4_const_splat(0)

// 16 products of a signed byte (-127..127) and an unsigned 7-bit one (0..127), added in pairs to 8 × i16. One
// vpmaddubsw on x64, and the same result on every machine as long as the second operand stays within 7 bits.
INLINE vec dot_i8_u7(vec signed_bytes, vec unsigned_bytes) {
  return wasm_i16x8_relaxed_dot_i8x16_i7x16(signed_bytes, unsigned_bytes);
}

// 16 products of a signed byte and another one, added in fours to 4 × i32: one instruction on arm64 (sdot) and on x64 with
// AVX-VNNI (vpdpbusd), three on other x64. dot_of_machine tells what bytes above 127 mean.
INLINE vec add_dot(vec signed_bytes, vec other_bytes, vec sum) {
  return wasm_i32x4_relaxed_dot_i8x16_i7x16_add(signed_bytes, other_bytes, sum);
}

// Kinds of add_dot: not worth using, or reading the bytes of its second operand as signed or unsigned.
enum { NO_DOT, SIGNED_DOT, UNSIGNED_DOT };

// Detects the kind. WebAssembly does not define the meaning of a byte of 255: vpdpbusd reads it as unsigned, sdot as signed, and
// the first of the three other instructions saturates sums of two products at 16 bits. Detection takes a dozen instructions,
// so each operator repeats it.
INLINE int dot_of_machine(void) {
  volatile int8_t most = 127;
  volatile uint8_t all_bits = 255;
  const vec sums = add_dot(wasm_i8x16_splat(most), wasm_i8x16_splat((int8_t)all_bits), wasm_i32x4_const_splat(0));
  const int32_t sum = wasm_i32x4_extract_lane(sums, 0);
  return sum == 4 * 127 * 255 ? UNSIGNED_DOT : sum == 4 * 127 * -1 ? SIGNED_DOT : NO_DOT;
}

INLINE vec pair_sums_i32(vec i16s) { return wasm_i32x4_extadd_pairwise_i16x8(i16s); }
INLINE vec to_f32(vec i32s) { return wasm_f32x4_convert_i32x4(i32s); }
INLINE vec madd(vec a, vec b, vec sum) { return wasm_f32x4_relaxed_madd(a, b, sum); }
INLINE vec nmadd(vec a, vec b, vec sum) { return wasm_f32x4_relaxed_nmadd(a, b, sum); }

// A macro: the lane has to be a constant.
#define splat_lane(v, lane) wasm_i32x4_shuffle(v, v, lane, lane, lane, lane)
// Lane `lane` in all lanes, where the number becomes a constant only when a loop is unrolled.
INLINE vec splat_number(vec v, int lane) { return wasm_f32x4_splat(((__f32x4)v)[lane]); }
INLINE vec load_splat_f32(const float *p) { return wasm_v128_load32_splat(p); }

INLINE float sum_f32(vec v) {
  return (wasm_f32x4_extract_lane(v, 0) + wasm_f32x4_extract_lane(v, 1)) +
         (wasm_f32x4_extract_lane(v, 2) + wasm_f32x4_extract_lane(v, 3));
}

INLINE int32_t sum_i32(vec v) {
  return wasm_i32x4_extract_lane(v, 0) + wasm_i32x4_extract_lane(v, 1) + wasm_i32x4_extract_lane(v, 2) +
         wasm_i32x4_extract_lane(v, 3);
}

// Lane i of the result is the sum of the lanes of the i-th argument.
INLINE vec sums_f32x4(vec a, vec b, vec c, vec d) {
  const vec ab = wasm_f32x4_add(wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), wasm_i32x4_shuffle(a, b, 2, 6, 3, 7));
  const vec cd = wasm_f32x4_add(wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), wasm_i32x4_shuffle(c, d, 2, 6, 3, 7));
  return wasm_f32x4_add(wasm_i64x2_shuffle(ab, cd, 0, 2), wasm_i64x2_shuffle(ab, cd, 1, 3));
}

INLINE float max_f32(vec v) {
  vec t = wasm_f32x4_max(v, wasm_i64x2_shuffle(v, v, 1, 0));
  t = wasm_f32x4_max(t, wasm_i32x4_shuffle(t, t, 1, 0, 1, 0));
  return wasm_f32x4_extract_lane(t, 0);
}

// Constants that the loops need in registers. v128.const is rebuilt at each use, so they go through memory that
// the compiler cannot see through, once per call of an operator.
typedef struct {
  vec nibble;     // 0x0f in every byte
  vec high_pair;  // 0x30 in every byte
  vec five_bits;  // 0x1f in every byte
  vec two_bits_at_3; // 0x18 in every byte
  vec f16_bits;   // sign and shifted magnitude of a half in 32 bits
  vec f16_scale;  // 2^112, which completes the conversion
  vec sixteen;    // 16 in every i16
  vec low_bytes;  // 0x00ff in every i16
  vec ones;       // 1 in every i16
  vec six_bits;   // 0x3f in every byte
  vec half_exponent; // its bits, in every i16
  vec magnitude;  // of a float
  vec least_half; // 2^-14, the least normal one
  vec rebias;     // 112 << 23, which does what f16_scale does to the bits of a normal half
  vec byte_twice_high; // takes the lowest byte of each 32 bits as the upper halves of two i16
  vec exponent;   // of a float, in every i32
  vec one;        // 1 in every byte
  vec bits;       // 1, 2, 4 … 128, twice
  vec spread;     // 0 eight times, 1 eight times
  vec half_up;    // 2^100, see mul-mat-float.h
  vec sign_bits;  // 0x80 in every byte
  vec codes;      // the code book of the format, if it has one
  int never;      // 0, which the compiler does not know
  int dot;        // dot_of_machine()
} constants;

INLINE vec opaque(vec v) {
  volatile vec hidden = v;
  return hidden;
}

#define BYTE_TWICE_HIGH wasm_i8x16_const(-1, 0, -1, 0, -1, 4, -1, 4, -1, 8, -1, 8, -1, 12, -1, 12)

INLINE constants make_constants(vec codes) {
  volatile int32_t nibble = 0x0f0f0f0f, high_pair = 0x30303030, f16_bits = (int32_t)0x8fffe000;
  volatile int never = 0;
  volatile int32_t f16_scale = 0x77800000, sixteen = 0x00100010;
  return (constants){wasm_i32x4_splat(nibble), wasm_i32x4_splat(high_pair), opaque(wasm_i8x16_const_splat(0x1f)),
                     opaque(wasm_i8x16_const_splat(0x18)), wasm_i32x4_splat(f16_bits),
                     wasm_i32x4_splat(f16_scale), wasm_i32x4_splat(sixteen),
                     opaque(wasm_i16x8_const_splat(0xff)), opaque(wasm_i16x8_const_splat(1)), opaque(wasm_i8x16_const_splat(0x3f)),
                     opaque(wasm_i16x8_const_splat(0x7c00)), opaque(wasm_i32x4_const_splat(0x7fffffff)), opaque(wasm_f32x4_const_splat(0x1p-14f)),
                     opaque(wasm_i32x4_const_splat(112 << 23)),
                     opaque(BYTE_TWICE_HIGH), opaque(wasm_i32x4_const_splat(0x7f800000)), opaque(wasm_i8x16_const_splat(1)),
                     opaque(wasm_i64x2_const_splat((int64_t)0x8040201008040201)),
                     opaque(wasm_i64x2_const(0, 0x0101010101010101)), opaque(wasm_f32x4_const_splat(0x1p100f)), opaque(wasm_i8x16_const_splat(-128)), opaque(codes), never,
                     dot_of_machine()};
}

// --- half precision ---------------------------------------------------------------------------------------------
// A half becomes a float by moving its 15 magnitude bits to the float's place and scaling by 2^112. Infinities and
// NaN become 65536 times a number: weights and scales of a GGUF hold none that mean anything.

// Four halves, one in the low 16 bits of each lane, still to be scaled by f16_scale.
INLINE vec f16_bits_to_f32(vec halves, vec f16_bits) { return wasm_v128_and(wasm_i32x4_shl(halves, 13), f16_bits); }

// One half. Subnormal ones take a path of their own: a multiplication with a subnormal float costs over 100 cycles.
INLINE float f16_to_f32(const void *p) {
  const uint32_t half = *(const uint16_t *)p;
  if (!(half & 0x7c00)) {
    const float magnitude = (float)(int32_t)(half & 0x3ff) * 0x1p-24f;
    return half & 0x8000 ? -magnitude : magnitude;
  }
  const int32_t bits = (int32_t)((uint32_t)(int32_t) * (const int16_t *)p << 13) & (int32_t)0x8fffe000;
  float shifted;
  __builtin_memcpy(&shifted, &bits, sizeof shifted);
  return shifted * 0x1p112f;
}

// f32 → f16 → f32, to nearest even, for finite values: activation scales are stored as halves by llama.cpp.
INLINE float round_to_f16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const uint32_t sign = bits & 0x80000000u;
  bits &= 0x7fffffffu;
  float magnitude;
  __builtin_memcpy(&magnitude, &bits, sizeof magnitude);
  if (magnitude < 0x1p-14f) {
    // The spacing of floats at 0.5 is 2^-24, that of subnormal halves.
    const float rounded = magnitude + 0x1p-1f;
    magnitude = rounded - 0x1p-1f;
  } else {
    bits += 0xfff + ((bits >> 13) & 1);
    bits &= ~0x1fffu;
    __builtin_memcpy(&magnitude, &bits, sizeof magnitude);
  }
  __builtin_memcpy(&bits, &magnitude, sizeof bits);
  bits |= sign;
  __builtin_memcpy(&magnitude, &bits, sizeof magnitude);
  return magnitude;
}
