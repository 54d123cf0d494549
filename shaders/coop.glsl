/* Cooperative matrices of fp16 with sums in fp32, of M x K by K x N, which kernels define before, and shared memory
 * where there are such. With them each access of shared memory, coopMatLoad or an assignment, is available or visible
 * to the workgroup by itself: Mesa's compiler for Intel waits for all that is under way, and has a fence, at each load
 * of a matrix. Here barriers see to that, and accesses are SPIR-V's instructions without such operands. */
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_spirv_intrinsics : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

#define BARRIER(scope) controlBarrier(scope, scope, gl_StorageSemanticsShared, \
    gl_SemanticsAcquireRelease | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible)
#define TILE_BARRIER() BARRIER(gl_ScopeWorkgroup)

#define A_MATRIX coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA>
#define B_MATRIX coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB>
#define SUMS coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>

#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COLUMN_MAJOR gl_CooperativeMatrixLayoutColumnMajor
#define NON_PRIVATE 0x20   /* NonPrivatePointer */
spirv_instruction(id = 4457)
A_MATRIX load_a(spirv_by_reference uvec4 from, int layout_of, uint stride, spirv_literal int access);
spirv_instruction(id = 4457)
B_MATRIX load_b(spirv_by_reference uvec4 from, int layout_of, uint stride, spirv_literal int access);
spirv_instruction(id = 4457)
SUMS load_sums(spirv_by_reference float from, int layout_of, uint stride, spirv_literal int access);
spirv_instruction(id = 4458)
void store_sums(spirv_by_reference uvec4 to, SUMS s, int layout_of, uint stride, spirv_literal int access);
spirv_instruction(id = 61) uvec4 load(spirv_by_reference uvec4 from, spirv_literal int access);
spirv_instruction(id = 62) void store(spirv_by_reference uvec4 to, uvec4 value, spirv_literal int access);
spirv_instruction(id = 61) float load(spirv_by_reference float from, spirv_literal int access);
spirv_instruction(id = 62) void store(spirv_by_reference float to, float value, spirv_literal int access);
