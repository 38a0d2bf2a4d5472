/* The layers. Votes are never unpacked, and nothing is allocated.

   For every four inputs, a table holds the sums of all 16 subsets. Four votes (half a byte) select one of these sums.
   All outputs share the tables. An output of binary votes is 2 * ((sum of inputs voted +1) - (sum of all inputs) / 2),
   one of ternary votes (sum of inputs voted +1) - (sum of inputs voted -1).

   Convolutions compute FV_PIXELS pixels at once. The values of these pixels are adjacent in memory, for vector
   instructions. Compile with -O3 if the processor has them, with -DFV_PIXELS=1 if memory is scarce. */

#include <stddef.h>
#include <stdint.h>

#ifndef FV_PIXELS
#define FV_PIXELS 16
#endif
#define FV_CHUNK 8 /* bytes of votes per set of tables */

#ifdef __GNUC__ /* a network may leave some functions unused */
#define FV_FUNCTION static inline __attribute__((unused))
#else
#define FV_FUNCTION static inline
#endif

typedef struct {
    int inputs, outputs;                /* of one group; the arrays hold one group after the other */
    const uint8_t *positive, *negative; /* bits of votes +1 and -1, by chunk, output and byte; negative: ternary only */
    const float *floats;                /* instead of votes: float weights, by output and input */
    const float *scale, *bias;          /* per output; scale: votes only; bias: 0 for none */
} fv_weights;

/* Fill the tables: sums of all subsets of every four inputs. Inputs beyond the end are 0. */
FV_FUNCTION void fv_tables(const float *x, int count, float *tables, int P)
{
    for (int quad = 0; 4 * quad < count; quad++, tables += 16 * P) {
        for (int p = 0; p < P; p++) tables[p] = 0;
        for (int i = 0; i < 4; i++) { /* the first input is the highest bit */
            int index = 4 * quad + 3 - i;
            for (int m = 0; m < 1 << i; m++)
                for (int p = 0; p < P; p++)
                    tables[((1 << i) + m) * P + p] = tables[m * P + p] + (index < count ? x[index * P + p] : 0);
        }
    }
}

/* y += sign * ((sum of the selected table entries) - offset), for every pixel */
FV_FUNCTION void fv_lookup(const uint8_t *votes, int bytes, const float *tables, const float *offset, float sign,
                           float *y, int P)
{
    float sum[FV_PIXELS];
    for (int p = 0; p < P; p++) sum[p] = 0;
    for (int b = 0; b < bytes; b++, tables += 32 * P) {
        const float *high = tables + (votes[b] >> 4) * P, *low = tables + (16 + (votes[b] & 15)) * P;
        for (int p = 0; p < P; p++) sum[p] += high[p] + low[p];
    }
    for (int p = 0; p < P; p++) y[p] += sign * (sum[p] - offset[p]);
}

/* y = W x + bias, for P pixels */
FV_FUNCTION void fv_products(const fv_weights *w, const float *x, float *y, int P)
{
    if (w->floats) {
        for (int o = 0; o < w->outputs; o++) {
            const float *row = w->floats + (size_t)o * w->inputs;
            float sum[FV_PIXELS] = {0};
            for (int p = 0; p < P; p++) sum[p] = w->bias ? w->bias[o] : 0;
            for (int i = 0; i < w->inputs; i++)
                for (int p = 0; p < P; p++) sum[p] += row[i] * x[i * P + p];
            for (int p = 0; p < P; p++) y[o * P + p] = sum[p];
        }
        return;
    }
    float tables[2 * FV_CHUNK * 16 * FV_PIXELS], offset[FV_PIXELS];
    for (int i = 0; i < w->outputs * P; i++) y[i] = 0;
    size_t at = 0;
    for (int first = 0; first < w->inputs; first += 8 * FV_CHUNK) {
        int count = w->inputs - first < 8 * FV_CHUNK ? w->inputs - first : 8 * FV_CHUNK, bytes = (count + 7) / 8;
        if (count % 8) /* a byte reads two tables, and the last one may be missing */
            for (int i = 0; i < 2 * FV_CHUNK * 16 * P; i++) tables[i] = 0;
        fv_tables(x + first * P, count, tables, P);
        /* binary: sum_i v_i x_i = 2 (sum_{v_i = 1} x_i - sum_i x_i / 2), chunk by chunk: over all inputs, both sums
           would be so large that their difference loses precision */
        for (int p = 0; p < P; p++) offset[p] = 0;
        for (int i = 0; i < count && !w->negative; i++)
            for (int p = 0; p < P; p++) offset[p] += x[(first + i) * P + p] / 2;
        for (int o = 0; o < w->outputs; o++, at += bytes) {
            fv_lookup(w->positive + at, bytes, tables, offset, 1, y + o * P, P);
            if (w->negative) fv_lookup(w->negative + at, bytes, tables, offset, -1, y + o * P, P);
        }
    }
    for (int o = 0; o < w->outputs; o++)
        for (int p = 0; p < P; p++) {
            float sum = w->negative ? y[o * P + p] : 2 * y[o * P + p];
            y[o * P + p] = sum * w->scale[o] + (w->bias ? w->bias[o] : 0);
        }
}

FV_FUNCTION void fv_product(const fv_weights *w, const float *x, float *y)
{
    fv_products(w, x, y, 1);
}

/* A window on images of shape (channels, height, width). Outside the image there are zeros. */
typedef struct {
    int channels, height, width;             /* of the input */
    int out_height, out_width;               /* of the output */
    int kernel_y, kernel_x, stride_y, stride_x, pad_y, pad_x, dilation_y, dilation_x;
} fv_window;

/* Copy the inputs under a window to every FV_PIXELS-th number of the patch. */
FV_FUNCTION void fv_fill_patch(const fv_window *v, int first, int last, int oy, int ox, const float *x, float *patch)
{
    for (int c = first; c < last; c++)
        for (int ky = 0; ky < v->kernel_y; ky++) {
            int iy = oy * v->stride_y + ky * v->dilation_y - v->pad_y;
            for (int kx = 0; kx < v->kernel_x; kx++, patch += FV_PIXELS) {
                int ix = ox * v->stride_x + kx * v->dilation_x - v->pad_x;
                int inside = iy >= 0 && iy < v->height && ix >= 0 && ix < v->width;
                *patch = inside ? x[((size_t)c * v->height + iy) * v->width + ix] : 0;
            }
        }
}

/* The weights of one group of outputs. */
FV_FUNCTION fv_weights fv_group(fv_weights w, int group)
{
    size_t first = (size_t)group * w.outputs, bytes = first * ((w.inputs + 7) / 8);
    if (w.positive) w.positive += bytes;
    if (w.negative) w.negative += bytes;
    if (w.floats) w.floats += first * w.inputs;
    if (w.scale) w.scale += first;
    if (w.bias) w.bias += first;
    return w;
}

/* Convolution. `patch` and `sums` are working memory. */
FV_FUNCTION void fv_conv(const fv_weights *w, int groups, const fv_window *v, const float *x, float *y, float *patch,
                           float *sums)
{
    int channels = v->channels / groups, pixels = v->out_height * v->out_width;
    for (int g = 0; g < groups; g++) {
        fv_weights weights = fv_group(*w, g);
        for (int q = 0; q < pixels; q += FV_PIXELS) {
            int count = pixels - q < FV_PIXELS ? pixels - q : FV_PIXELS;
            for (int p = 0; p < FV_PIXELS; p++) { /* repeat the last pixel beyond the end */
                int at = q + (p < count ? p : count - 1);
                fv_fill_patch(v, g * channels, (g + 1) * channels, at / v->out_width, at % v->out_width, x, patch + p);
            }
            fv_products(&weights, patch, sums, FV_PIXELS);
            for (int o = 0; o < weights.outputs; o++)
                for (int p = 0; p < count; p++)
                    y[(size_t)(g * weights.outputs + o) * pixels + q + p] = sums[o * FV_PIXELS + p];
        }
    }
}

/* The maximum of each window, or its mean. `zeros_count`: the mean includes the zeros outside the image. */
FV_FUNCTION void fv_pool(const fv_window *v, int mean, int zeros_count, const float *x, float *y)
{
    for (int c = 0; c < v->channels; c++)
        for (int oy = 0; oy < v->out_height; oy++)
            for (int ox = 0; ox < v->out_width; ox++) {
                float largest = 0, sum = 0;
                int count = 0;
                for (int ky = 0; ky < v->kernel_y; ky++)
                    for (int kx = 0; kx < v->kernel_x; kx++) {
                        int iy = oy * v->stride_y + ky * v->dilation_y - v->pad_y;
                        int ix = ox * v->stride_x + kx * v->dilation_x - v->pad_x;
                        if (iy < 0 || iy >= v->height || ix < 0 || ix >= v->width) continue;
                        float value = x[((size_t)c * v->height + iy) * v->width + ix];
                        if (!count || value > largest) largest = value;
                        sum += value;
                        count++;
                    }
                *y++ = mean ? sum / (float)(zeros_count ? v->kernel_y * v->kernel_x : count) : largest;
            }
}

/* The mean of each channel. */
FV_FUNCTION void fv_mean(const float *x, float *y, int channels, int pixels)
{
    for (int c = 0; c < channels; c++) {
        float sum = 0;
        for (int i = 0; i < pixels; i++) sum += *x++;
        y[c] = sum / (float)pixels;
    }
}

FV_FUNCTION void fv_bytes(const uint8_t *x, float *y, int count)
{
    for (int i = 0; i < count; i++) y[i] = x[i];
}

/* Zeros before and behind the numbers of x. */
FV_FUNCTION void fv_pad(const float *x, float *y, int before, int count, int after)
{
    for (int i = 0; i < before; i++) *y++ = 0;
    for (int i = 0; i < count; i++) *y++ = x[i];
    for (int i = 0; i < after; i++) *y++ = 0;
}

FV_FUNCTION void fv_relu(const float *x, float *y, int count, float slope)
{
    for (int i = 0; i < count; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

FV_FUNCTION void fv_clip(const float *x, float *y, int count, float least, float most)
{
    for (int i = 0; i < count; i++) y[i] = x[i] < least ? least : x[i] > most ? most : x[i];
}

/* y = x op c. Each of the `values` numbers of c serves `run` neighbours; then c starts again. */
FV_FUNCTION void fv_each(char op, const float *x, const float *c, float *y, int count, int values, int run)
{
    for (int i = 0; i < count; i++) {
        float b = c[i / run % values];
        y[i] = op == '+' ? x[i] + b : op == '-' ? x[i] - b : op == '*' ? x[i] * b : x[i] / b;
    }
}
