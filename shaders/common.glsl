/* What every kernel starts from: buffer reference types, params.h, 64-bit address arithmetic without 64-bit integers
 * (the baseline has none), exact-enough functions where Vulkan promises too little, and the sum over a workgroup. */
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_EXT_control_flow_attributes : require

#define PD_GLSL

layout(buffer_reference, std430, buffer_reference_align = 4) buffer pd_words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer pd_words_read { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer pd_floats { float at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer pd_addresses { uvec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer pd_uvec2s { uvec2 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer pd_vec4s { vec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer pd_vec4s_written { vec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer pd_vec4s_both { vec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer pd_uvec4s { uvec4 at[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) writeonly buffer pd_uvec4s_written { uvec4 at[]; };
#ifdef WIDE
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer pd_pairs { uint64_t at[]; };
#extension GL_EXT_shader_8bit_storage : require
layout(buffer_reference, std430, buffer_reference_align = 1) readonly buffer pd_bytes { uint8_t at[]; };
#endif
layout(buffer_reference) buffer pd_places;
layout(buffer_reference) buffer pd_candidates;
layout(buffer_reference) buffer pd_draws;
layout(buffer_reference) buffer pd_choices;
layout(buffer_reference) buffer pd_lora_parts;
layout(buffer_reference) buffer pd_state_runs;

#include "params.h"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer pd_places { pd_place at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer pd_candidates { pd_candidate at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer pd_draws { pd_draw at[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer pd_choices { pd_choice at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer pd_lora_parts { pd_lora_part at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer pd_state_runs { pd_state_run at[]; };

/* address + index * stride */
uvec2 address_of(uvec2 address, uint index, uint stride)
{
    uint high, low, carry;
    umulExtended(index, stride, high, low);
    low = uaddCarry(address.x, low, carry);
    return uvec2(low, address.y + high + carry);
}

/* By their bits: drivers may take every number for finite, and Vulkan leaves open what min, max, clamp and exp make of
 * NaN. What is not finite must stay so, as a clamp would turn damaged weights into fine logits. */
#define NOT_A_NUMBER uintBitsToFloat(0x7fc00000u)
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u; }

/* Of a norm, from the mean of squares plus epsilon; where that is not finite NaN, as the 0 of an infinity would hide
 * it. */
float rms_scale(float x) { return is_finite(x) ? 1.0 / sqrt(x) : NOT_A_NUMBER; }

/* Of a score in a softmax, relative to the highest. */
float softmax_weight(float score, float top) { return is_finite(score) ? exp(score - top) : NOT_A_NUMBER; }

/* Vulkan's own tanh may be as coarse as 2^-11; exp is good to 3 + 2|x| ulp. Beyond 15 tanh is 1 in fp32. */
float tanh_exact(float x)
{
    return 1.0 - 2.0 / (exp(2.0 * clamp(x, -15.0, 15.0)) + 1.0);
}

float softcap_of(float x, float cap)
{
    return cap == 0.0 || !is_finite(x) ? x : cap * tanh_exact(x / cap);
}
