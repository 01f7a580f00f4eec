/* What a layer of the chat model computes between its matrix products, forwards and backwards: see chat_ops.py. */

#include <math.h>
#include <stdint.h>
#include <string.h>

/* e to the x for the range of attention and gates: Cephes' polynomial, in a form that compilers vectorise. */
static inline float fast_exp(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = __builtin_rintf(x * 1.44269504f);
    float rest = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * rest + 1.3981999507e-3f;
    p = p * rest + 8.3334519073e-3f;
    p = p * rest + 4.1665795894e-2f;
    p = p * rest + 1.6666665459e-1f;
    p = p * rest + 5.0000001201e-1f;
    p = p * rest * rest + rest + 1.0f;
    int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

void norm(long rows, long width, const float *restrict x, const float *restrict weight, float epsilon,
          float *restrict result, float *restrict inverse) {
    for (long row = 0; row < rows; row++, x += width, result += width) {
        float sum = 0;
        for (long i = 0; i < width; i++) sum += x[i] * x[i];
        inverse[row] = 1 / sqrtf(sum / width + epsilon);
        for (long i = 0; i < width; i++) result[i] = x[i] * inverse[row] * weight[i];
    }
}

void norm_back(long rows, long width, const float *restrict x, const float *restrict weight,
               const float *restrict inverse, const float *restrict gradient, float *restrict of_x,
               float *restrict of_weight) {
    memset(of_weight, 0, width * sizeof(float));
    for (long row = 0; row < rows; row++, x += width, gradient += width, of_x += width) {
        float q = inverse[row], sum = 0;
        for (long i = 0; i < width; i++) {
            float product = gradient[i] * x[i];
            of_weight[i] += product * q;
            sum += product * weight[i];
        }
        float along = sum * q * q * q / width;
        for (long i = 0; i < width; i++) of_x[i] = gradient[i] * weight[i] * q - x[i] * along;
    }
}

void gated(long count, const float *restrict gate, const float *restrict up, float *restrict result) {
    for (long i = 0; i < count; i++) result[i] = gate[i] / (1 + fast_exp(-gate[i])) * up[i];
}

void gated_back(long count, const float *restrict gate, const float *restrict up, const float *restrict gradient,
                float *restrict of_gate, float *restrict of_up) {
    for (long i = 0; i < count; i++) {
        float sigmoid = 1 / (1 + fast_exp(-gate[i]));
        of_up[i] = gradient[i] * gate[i] * sigmoid;
        of_gate[i] = gradient[i] * up[i] * sigmoid * (1 + gate[i] * (1 - sigmoid));
    }
}

/* One head of one token: copied, or rotated by an angle of each pair of its halves and scaled. */
static inline void turn_head(long half, const float *restrict from, const float *restrict cosine,
                             const float *restrict sine, float scale, float sign, float *restrict to) {
    if (!cosine) {
        memcpy(to, from, 2 * half * sizeof(float));
        return;
    }
    for (long i = 0; i < half; i++) {
        float first = from[i] * scale, second = from[i + half] * scale;
        to[i] = first * cosine[i] - sign * second * sine[i];
        to[i + half] = second * cosine[i] + sign * first * sine[i];
    }
}

/* [batch, length, heads, head] to [batch, heads, length, head]; cosine and sine have half a head for each position. */
void split(long batch, long length, long heads, long head, const float *restrict x, const float *restrict cosine,
           const float *restrict sine, float scale, float *restrict result) {
    long half = head / 2;
    for (long b = 0; b < batch; b++)
        for (long t = 0; t < length; t++)
            for (long h = 0; h < heads; h++)
                turn_head(half, x + ((b * length + t) * heads + h) * head, cosine ? cosine + t * half : 0,
                          sine ? sine + t * half : 0, scale, 1, result + ((b * heads + h) * length + t) * head);
}

/* The way back, with the opposite rotation: also the gradient of `split`. */
void join(long batch, long length, long heads, long head, const float *restrict x, const float *restrict cosine,
          const float *restrict sine, float scale, float *restrict result) {
    long half = head / 2;
    for (long b = 0; b < batch; b++)
        for (long t = 0; t < length; t++)
            for (long h = 0; h < heads; h++)
                turn_head(half, x + ((b * heads + h) * length + t) * head, cosine ? cosine + t * half : 0,
                          sine ? sine + t * half : 0, scale, -1, result + ((b * length + t) * heads + h) * head);
}

void attention_weights(long rows, long length, float *restrict scores) {
    for (long row = 0; row < rows; row++, scores += length) {
        long count = row % length + 1;
        float largest = -INFINITY, sum = 0;
        for (long i = 0; i < count; i++) largest = scores[i] > largest ? scores[i] : largest;
        for (long i = 0; i < count; i++) {
            scores[i] = fast_exp(scores[i] - largest);
            sum += scores[i];
        }
        for (long i = 0; i < count; i++) scores[i] *= 1 / sum;
        memset(scores + count, 0, (length - count) * sizeof(float));
    }
}

void attention_weights_back(long rows, long length, const float *restrict weights, float *restrict gradient) {
    for (long row = 0; row < rows; row++, weights += length, gradient += length) {
        long count = row % length + 1;
        float sum = 0;
        for (long i = 0; i < count; i++) sum += weights[i] * gradient[i];
        for (long i = 0; i < count; i++) gradient[i] = weights[i] * (gradient[i] - sum);
        memset(gradient + count, 0, (length - count) * sizeof(float));
    }
}
