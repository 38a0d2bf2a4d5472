/* Recognise images: read unscaled inputs from stdin, one after the other, and print the class of each. */

#include <stdio.h>

#include "network.h"

int main(void)
{
    uint8_t input[NETWORK_INPUTS];
    float logits[NETWORK_OUTPUTS];
    while (fread(input, 1, sizeof input, stdin) == sizeof input) {
        network_run(input, logits);
        int best = 0;
        for (int i = 1; i < NETWORK_OUTPUTS; i++)
            if (logits[i] > logits[best]) best = i;
        printf("%s %.3f\n", network_classes[best], logits[best]);
    }
    return 0;
}
