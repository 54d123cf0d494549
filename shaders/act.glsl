/* Activations of gated units, act(gate) up. GELU: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), Gemma's tanh form.
 * SiLU: x / (1 + exp(-x)). Clamped SiLU, gpt-oss's: g / (1 + exp(-1.702 g)) (u + 1), where g is the gate up to 7, and u
 * what it multiplies, -7 to 7. */
float gelu(float x)
{
    return 0.5 * x * (1.0 + tanh_exact(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

float silu(float x)
{
    return x / (1.0 + exp(-clamp(x, -80.0, 80.0)));
}

/* No number stays none, which clamp() need not see to. */
float clamped_silu(float gate, float up)
{
    float g = gate > 7.0 ? 7.0 : gate, u = up > 7.0 ? 7.0 : up < -7.0 ? -7.0 : up;
    return g / (1.0 + exp(-clamp(1.702 * g, -80.0, 80.0))) * (u + 1.0);
}

float gated(uint act, float gate, float up)
{
    if (act == PD_CLAMPED_SILU) return clamped_silu(gate, up);
    return (act == PD_GELU ? gelu(gate) : silu(gate)) * up;
}
