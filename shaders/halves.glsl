/* fp16 in words: pairs, and eight in a uvec4. */
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

f16vec2 pair(uint word) { return unpackFloat2x16(word); }

uvec4 packed(vec4 a, vec4 b)
{
    return uvec4(packFloat2x16(f16vec2(a.xy)), packFloat2x16(f16vec2(a.zw)), packFloat2x16(f16vec2(b.xy)),
                 packFloat2x16(f16vec2(b.zw)));
}
