/* Activations of gated units. GELU: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Gemma's tanh form.
 * SiLU: x / (1 + exp(-x)). */
float gelu(float x)
{
    return 0.5 * x * (1.0 + tanh_exact(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

float silu(float x)
{
    return x / (1.0 + exp(-clamp(x, -80.0, 80.0)));
}
