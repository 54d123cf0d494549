/* What kernels of a matrix add to the sum of a row: see pd_linear in ops/ops.h. The includer has the push constant
 * p.bias. */
layout(constant_id = PD_BIAS_ID) const bool BIAS = false;
float with_bias(float y, uint row) { return BIAS ? y + p.bias.at[row] : y; }
