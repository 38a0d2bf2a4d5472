/* The layers. Weights that are votes stay packed: they are never unpacked, and nothing is allocated.

   Of every four inputs, the sums of all 16 subsets are put into a table; half a byte of weights looks one of them up. A
   table serves all outputs. A layer of binary votes is 2 * (inputs with a vote of +1) - (all inputs), one of ternary votes
   (inputs with a vote of +1) - (inputs with a vote of -1). */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FV_CHUNK 8 /* bytes of votes that tables are made for at a time */

typedef struct {
    int inputs, outputs;
    const uint8_t *positive, *negative; /* votes of +1 and of -1, by chunk, output and byte; negative: only of trits */
    const float *floats;                /* instead of votes: weights, by output and input */
    const float *scale, *bias;          /* of every output; scale: only of votes; bias: 0 for none */
} fv_weights;

/* Sums of the inputs of all subsets; inputs beyond the end are 0. */
static inline void fv_tables(const float *x, int count, float tables[2 * FV_CHUNK][16])
{
    for (int quad = 0; 4 * quad < count; quad++) {
        float *t = tables[quad];
        t[0] = 0;
        for (int i = 0; i < 4; i++) { /* the first input is the highest bit */
            float value = 4 * quad + 3 - i < count ? x[4 * quad + 3 - i] : 0;
            for (int m = 0; m < 1 << i; m++) t[(1 << i) + m] = t[m] + value;
        }
    }
}

static inline float fv_lookup(const uint8_t *votes, int bytes, float tables[2 * FV_CHUNK][16])
{
    float sum = 0;
    for (int b = 0; b < bytes; b++) sum += tables[2 * b][votes[b] >> 4] + tables[2 * b + 1][votes[b] & 15];
    return sum;
}

/* y = W x + bias */
static inline void fv_product(const fv_weights *w, const float *x, float *y)
{
    if (w->floats) {
        for (int o = 0; o < w->outputs; o++) {
            float sum = w->bias ? w->bias[o] : 0;
            for (int i = 0; i < w->inputs; i++) sum += w->floats[(size_t)o * w->inputs + i] * x[i];
            y[o] = sum;
        }
        return;
    }
    float tables[2 * FV_CHUNK][16], all = 0;
    memset(tables, 0, sizeof tables);
    memset(y, 0, sizeof *y * w->outputs);
    size_t at = 0;
    for (int first = 0; first < w->inputs; first += 8 * FV_CHUNK) {
        int count = w->inputs - first < 8 * FV_CHUNK ? w->inputs - first : 8 * FV_CHUNK, bytes = (count + 7) / 8;
        fv_tables(x + first, count, tables);
        for (int i = 0; i < count; i++) all += x[first + i];
        for (int o = 0; o < w->outputs; o++, at += bytes) {
            y[o] += fv_lookup(w->positive + at, bytes, tables);
            if (w->negative) y[o] -= fv_lookup(w->negative + at, bytes, tables);
        }
    }
    for (int o = 0; o < w->outputs; o++) {
        float sum = w->negative ? y[o] : 2 * y[o] - all;
        y[o] = sum * w->scale[o] + (w->bias ? w->bias[o] : 0);
    }
}

/* Images: (channels, height, width). Windows may reach over the edge, where there are zeros. */
typedef struct {
    int channels, height, width;             /* of the input */
    int out_height, out_width;               /* of the output */
    int kernel_y, kernel_x, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
} fv_window;

/* One weight for each group of channels. `patch` and `sums` are working memory. */
static inline void fv_conv(const fv_weights *w, int groups, const fv_window *v, const float *x, float *y, float *patch,
                    float *sums)
{
    int channels = v->channels / groups, pixels = v->out_height * v->out_width;
    for (int g = 0; g < groups; g++)
        for (int oy = 0; oy < v->out_height; oy++)
            for (int ox = 0; ox < v->out_width; ox++) {
                float *p = patch;
                for (int c = g * channels; c < (g + 1) * channels; c++)
                    for (int ky = 0; ky < v->kernel_y; ky++) {
                        int iy = oy * v->stride_y + ky * v->dilation_y - v->pad_y;
                        for (int kx = 0; kx < v->kernel_x; kx++) {
                            int ix = ox * v->stride_x + kx * v->dilation_x - v->pad_x;
                            int inside = iy >= 0 && iy < v->height && ix >= 0 && ix < v->width;
                            *p++ = inside ? x[((size_t)c * v->height + iy) * v->width + ix] : 0;
                        }
                    }
                fv_product(&w[g], patch, sums);
                for (int o = 0; o < w[g].outputs; o++)
                    y[(size_t)(g * w[g].outputs + o) * pixels + oy * v->out_width + ox] = sums[o];
            }
}

static inline void fv_max_pool(const fv_window *v, const float *x, float *y)
{
    for (int c = 0; c < v->channels; c++)
        for (int oy = 0; oy < v->out_height; oy++)
            for (int ox = 0; ox < v->out_width; ox++) {
                float most = 0;
                int any = 0;
                for (int ky = 0; ky < v->kernel_y; ky++)
                    for (int kx = 0; kx < v->kernel_x; kx++) {
                        int iy = oy * v->stride_y + ky * v->dilation_y - v->pad_y;
                        int ix = ox * v->stride_x + kx * v->dilation_x - v->pad_x;
                        if (iy < 0 || iy >= v->height || ix < 0 || ix >= v->width) continue;
                        float value = x[((size_t)c * v->height + iy) * v->width + ix];
                        if (!any || value > most) most = value;
                        any = 1;
                    }
                *y++ = most;
            }
}

/* The mean of every channel. */
static inline void fv_mean(const float *x, float *y, int channels, int pixels)
{
    for (int c = 0; c < channels; c++) {
        float sum = 0;
        for (int i = 0; i < pixels; i++) sum += *x++;
        y[c] = sum / (float)pixels;
    }
}

static inline void fv_bytes(const uint8_t *x, float *y, int count)
{
    for (int i = 0; i < count; i++) y[i] = x[i];
}

static inline void fv_relu(const float *x, float *y, int count)
{
    for (int i = 0; i < count; i++) y[i] = x[i] > 0 ? x[i] : 0;
}

/* y = x op c, of which each of `values` numbers is for `run` neighbours, over and over. */
static inline void fv_each(char op, const float *x, const float *c, float *y, int count, int values, int run)
{
    for (int i = 0; i < count; i++) {
        float b = c[i / run % values];
        y[i] = op == '+' ? x[i] + b : op == '-' ? x[i] - b : op == '*' ? x[i] * b : x[i] / b;
    }
}
